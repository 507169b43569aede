# SPDX-License-Identifier: Apache-2.0
"""The plan as machines of AWS. Nothing is imported before it is asked for: most commands need little."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog.tables import table
from components.plan.platform import AccessReport, Meeting, Platform, Words
from schemas.model import Layout, Run

if TYPE_CHECKING:
    from components.aws_dl1.plan import AwsDl1Plan
    from components.aws_dl1.stack import AwsDl1Stack
    from components.plan.launch import RolePart
    from components.plan.model import Plan
    from components.plan.resolved import ResolvedJob


class AwsDl1Platform(Platform):
    way_to_services = "through gateway endpoints, or NAT"
    # A job is one cluster, and a run needs all of it.
    runs_at_once = False

    def lower(self, stack: AwsDl1Stack, plan: Plan, jobs: Mapping[str, ResolvedJob]) -> AwsDl1Plan:
        from components.aws_dl1.lower import lower

        return lower(stack, plan)

    def meeting(self, layout: Layout) -> Meeting:
        return Meeting("bucket", "addresses are exchanged in the bucket")

    def environments(
        self, job: ResolvedJob, part: RolePart, names: Mapping[str, str], run: Run, ranks: range
    ) -> Iterator[Mapping[str, str]]:
        environment: Mapping[str, str] = table("aws_dl1")["environment"]
        return repeat(environment, len(ranks))

    def words(self, plan: AwsDl1Plan) -> Words:
        from components.aws_dl1.words import words

        return words(plan)

    def access_report(self, plan: AwsDl1Plan, deployers: str) -> AccessReport:
        from components.aws_dl1.access_report import build_report

        return build_report(plan, deployers)

    def deploy(self, plan: AwsDl1Plan, folder: Path) -> dict[str, Any]:
        from components.aws_dl1.deploy import deploy

        return deploy(plan, folder)


PLATFORM = AwsDl1Platform()
