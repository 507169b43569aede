# SPDX-License-Identifier: Apache-2.0
"""The plan as resources of OCI Data Science. Nothing is imported before it is asked for: most commands need little."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.plan.platform import AccessReport, Meeting, Platform, Words
from schemas.model import Layout, Run

if TYPE_CHECKING:
    from components.oci.plan import OciPlan
    from components.oci.stack import OciStack
    from components.plan.launch import RolePart
    from components.plan.model import Plan
    from components.plan.resolved import ResolvedJob

_MEETINGS: Mapping[Layout, Meeting] = {
    "run-per-node": Meeting("bucket", "addresses are exchanged in the bucket"),
    "node-groups": Meeting("cluster-metadata", "addresses and ranks are those of OCI's own list of nodes"),
}


class OciPlatform(Platform):
    way_to_services = "through the service gateway"
    # Images of earlier releases know the variables `OCI__RUNTIME_…` only.
    names_code = False

    def lower(self, stack: OciStack, plan: Plan, jobs: Mapping[str, ResolvedJob]) -> OciPlan:
        from components.oci.lower import lower

        return lower(stack, plan, jobs)

    def circumstances(self, stack: OciStack) -> frozenset[str]:
        return frozenset({"joins"} if stack.joins_subnet else ())

    def meeting(self, layout: Layout) -> Meeting:
        return _MEETINGS[layout]

    def environments(
        self, job: ResolvedJob, part: RolePart, names: Mapping[str, str], run: Run, ranks: range
    ) -> Iterator[Mapping[str, str]]:
        from components.oci.ads import environments

        return environments(job, part, names, run, ranks)

    def group_environment(self, job: ResolvedJob) -> Mapping[str, str]:
        from components.oci.ads import git_environment

        return git_environment(job)

    def words(self, plan: OciPlan) -> Words:
        from components.oci.words import words

        return words(plan)

    def access_report(self, plan: OciPlan, deployers: str) -> AccessReport:
        from components.oci.access_report import build_report

        return build_report(plan, deployers)

    def deploy(self, plan: OciPlan, folder: Path) -> dict[str, Any]:
        from components.oci.deploy import deploy

        return deploy(plan, folder)


PLATFORM = OciPlatform()
