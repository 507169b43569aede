# SPDX-License-Identifier: Apache-2.0
"""The plan as resources of OCI Data Science. Methods import what they need, because most commands need little of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog.tables import table
from components.plan.platform import AccessReport, Rendezvous, Words
from components.platform.base import Platform

if TYPE_CHECKING:
    from components.oci.plan import OciPlan
    from components.oci.stack import OciStack
    from components.plan.launch import RolePart
    from components.plan.model import Plan
    from components.plan.ports import ResolvedJob
    from components.platform.client import Runs, Where
    from components.platform.files import StoreOpener, StoreRequest
    from components.platform.images import ImagePlatform
    from components.platform.inputs import OwnInputs
    from components.platform.live import LiveQuestion, LiveSide
    from components.platform.local import LocalPlatform
    from components.platform.rehearsal import RehearsalPlatform
    from components.platform.review import OfflineCloud, ReviewPlatform
    from components.platform.values import Properties
    from schemas.findings import CheckRule
    from schemas.model import Layout, Run

_RENDEZVOUS: Mapping[Layout, Rendezvous] = {
    "run-per-node": Rendezvous("bucket", "addresses are exchanged in the bucket"),
    "node-groups": Rendezvous("cluster-metadata", "addresses and ranks are those of OCI's own list of nodes"),
}


class OciPlatform(Platform):
    name = "oci"
    way_to_services = "through the service gateway"
    # Images of earlier releases know the variables `OCI__RUNTIME_…` only.
    names_code = False

    @property
    def stack(self) -> type[OciStack]:
        from components.oci.stack import OciStack

        return OciStack

    def rules(self) -> Mapping[str, CheckRule]:
        import components.oci.checks  # noqa: F401  # declares them
        from components.oci.stack import RULES

        return RULES

    def facts(self) -> Mapping[str, Any]:
        regions = table("regions")
        return {"regions": regions["keys"], "realms": regions["realms"]}

    def lower(self, stack: OciStack, plan: Plan, jobs: Mapping[str, ResolvedJob]) -> OciPlan:
        from components.oci.plan import lower

        return lower(stack, plan, jobs)

    def circumstances(self, stack: OciStack) -> frozenset[str]:
        return frozenset({"joins"} if stack.joins_subnet else ())

    def rendezvous(self, layout: Layout) -> Rendezvous:
        return _RENDEZVOUS[layout]

    def environments(
        self, job: ResolvedJob, part: RolePart, names: Mapping[str, str], run: Run, ranks: range
    ) -> Iterator[Mapping[str, str]]:
        from components.oci.run_inputs import environments

        return environments(job, part, names, run, ranks)

    def group_environment(self, job: ResolvedJob) -> Mapping[str, str]:
        from components.oci.run_inputs import git_environment

        return git_environment(job)

    def words(self, plan: OciPlan) -> Words:
        from components.oci.plan import words

        return words(plan)

    def access_report(self, plan: OciPlan, deployers: str) -> AccessReport:
        from components.oci.access_report import build_report

        return build_report(plan, deployers)

    def deploy(self, plan: OciPlan, folder: Path) -> dict[str, Any]:
        from components.oci.resources.deploy import deploy

        return deploy(plan, folder)

    @property
    def run_inputs(self) -> OwnInputs:
        from components.oci.client.inputs import INPUTS

        return INPUTS

    def knows(self, run_id: str) -> bool:
        from components.oci.client.runs import knows

        return knows(run_id)

    def runs(self, config: Properties) -> Runs:
        from components.oci.client.runs import OciRuns
        from components.oci.client.session import Session

        return OciRuns(Session.of(config))

    def runs_of_caller(self, where: Where) -> Runs:
        from components.oci.client.runs import runs_of_caller

        return runs_of_caller(where)

    def images(self, plan: Plan, environment: Mapping[str, str]) -> ImagePlatform:
        from components.oci.client.images import make

        return make(plan, environment)

    def files(self, request: StoreRequest) -> StoreOpener:
        from components.oci.client.files import make

        return make(request)

    def live(self, question: LiveQuestion) -> LiveSide:
        from components.oci.client.live import make

        return make(question)

    @property
    def offline(self) -> OfflineCloud:
        from components.oci.offline import OciOffline

        return OciOffline()

    @property
    def local(self) -> LocalPlatform:
        from components.oci.local.stacks import OciLocalPlatform

        return OciLocalPlatform()

    @property
    def rehearsal(self) -> RehearsalPlatform:
        from components.oci.local.rehearsal import OciRehearsalPlatform

        return OciRehearsalPlatform()

    @property
    def review(self) -> ReviewPlatform:
        from components.oci.review.platform import OciReview

        return OciReview()


PLATFORM = OciPlatform()
