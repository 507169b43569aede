# SPDX-License-Identifier: Apache-2.0
"""The plan on paper: `pulumi up` writes it to a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.paper.model import PaperStack

from components.plan.model import Plan, extend
from components.plan.platform import AccessReport, Meeting, Words
from schemas.model import Layout, Run

if TYPE_CHECKING:
    from components.plan.launch import RolePart
    from components.plan.resolved import ResolvedJob


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperPlan(Plan):
    sheet: str


@dataclass(frozen=True, slots=True)
class Report:
    stack: str

    def text(self) -> str:
        return f"{self.stack}: whoever has a pencil may draw"


class PaperPlatform:
    way_to_services = "by hand"
    names_code = True

    def lower(self, stack: PaperStack, plan: Plan, jobs: Mapping[str, ResolvedJob]) -> PaperPlan:
        return extend(PaperPlan, plan, sheet=stack.sheet)

    def circumstances(self, stack: PaperStack) -> frozenset[str]:
        return frozenset()

    def meeting(self, layout: Layout) -> Meeting:
        return Meeting("bucket", "addresses stand on the same sheet")

    def environments(
        self, job: ResolvedJob, part: RolePart, names: Mapping[str, str], run: Run, ranks: range
    ) -> Iterator[Mapping[str, str]]:
        return repeat({}, len(ranks))

    def group_environment(self, job: ResolvedJob) -> Mapping[str, str]:
        return {}

    def words(self, plan: PaperPlan) -> Words:
        return Words([("sheet", plan.sheet)], [("users", "whoever has a pencil")], [("way out", "by hand")], [])

    def access_report(self, plan: PaperPlan, deployers: str) -> AccessReport:
        return Report(plan.stack)

    def registry(self, plan: PaperPlan, namespace: str) -> str:
        return plan.registry.repository

    def deploy(self, plan: PaperPlan, folder: Path) -> dict[str, Any]:
        import pulumi

        from components.plan.show import json_text

        if not pulumi.runtime.is_dry_run():
            (folder / plan.sheet).write_text(json_text(plan))
        return {"sheet": plan.sheet}


PLATFORM = PaperPlatform()
