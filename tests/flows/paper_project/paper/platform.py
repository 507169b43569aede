# SPDX-License-Identifier: Apache-2.0
"""The plan on paper: `pulumi up` writes it to a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.paper.stack import PaperStack

from components.plan.model import Plan, extend
from components.plan.platform import AccessReport, Meeting, Words
from components.platform.base import Platform
from schemas.model import Layout

if TYPE_CHECKING:
    from components.plan.ports import ResolvedJob


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperPlan(Plan):
    sheet: str


@dataclass(frozen=True, slots=True)
class Report:
    stack: str

    def text(self) -> str:
        return f"{self.stack}: whoever has a pencil may draw"


class PaperPlatform(Platform):
    name = "paper"
    way_to_services = "by hand"

    @property
    def stack(self) -> type[PaperStack]:
        return PaperStack

    def rules(self) -> Mapping[str, Any]:
        from schemas.checks.registry import CheckRules, Wrong, at
        from schemas.facts import Facts

        own = CheckRules()

        @own.rule("TY990", "a sheet that is not JSON")
        def sheet(stack: PaperStack, _: Facts) -> Iterator[Wrong]:
            if not stack.sheet.endswith(".json"):
                yield Wrong(at("sheet"), f"`{stack.sheet}` is not the name of a JSON file", "end it with .json")

        return own

    def lower(self, stack: PaperStack, plan: Plan, jobs: Mapping[str, ResolvedJob]) -> PaperPlan:
        return extend(PaperPlan, plan, sheet=stack.sheet)

    def meeting(self, layout: Layout) -> Meeting:
        return Meeting("bucket", "addresses stand on the same sheet")

    def words(self, plan: PaperPlan) -> Words:
        return Words([("sheet", plan.sheet)], [("users", "whoever has a pencil")], [("way out", "by hand")], [])

    def access_report(self, plan: PaperPlan, deployers: str) -> AccessReport:
        return Report(plan.stack)

    def deploy(self, plan: PaperPlan, folder: Path) -> dict[str, Any]:
        import pulumi

        from components.plan.show import json_text

        if not pulumi.runtime.is_dry_run():
            (folder / plan.sheet).write_text(json_text(plan))
        return {"sheet": plan.sheet}


PLATFORM = PaperPlatform()
