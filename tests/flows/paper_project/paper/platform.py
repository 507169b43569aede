# SPDX-License-Identifier: Apache-2.0
"""The plan on paper: `pulumi up` writes it to a file, and runs draw on the desk. It has no images and no stand-in."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.paper.stack import PaperStack

from components.plan.model import Plan, RunPlan, extend
from components.plan.platform import AccessReport, Rendezvous, Words
from components.platform.base import Platform
from schemas.model import Layout

if TYPE_CHECKING:
    from components.plan.ports import ResolvedJob
    from components.platform.client import Runs, Where
    from components.platform.files import StoreOpener, StoreRequest
    from components.platform.inputs import OwnInputs
    from components.platform.values import Properties


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperPlan(Plan):
    sheet: str
    desk: str


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
        from schemas.facts import Facts
        from schemas.findings import CheckRules, Wrong, at

        own = CheckRules()

        @own.rule("TY990", "a sheet that is not JSON")
        def sheet(stack: PaperStack, _: Facts) -> Iterator[Wrong]:
            if not stack.sheet.endswith(".json"):
                yield Wrong(at("sheet"), f"`{stack.sheet}` is not the name of a JSON file", "end it with .json")

        return own

    def lower(self, stack: PaperStack, plan: Plan, jobs: Mapping[str, ResolvedJob]) -> PaperPlan:
        return extend(PaperPlan, plan, sheet=stack.sheet, desk=stack.desk)

    def rendezvous(self, layout: Layout) -> Rendezvous:
        return Rendezvous("bucket", "addresses stand on the same sheet")

    def words(self, plan: PaperPlan) -> Words:
        return Words([("sheet", plan.sheet)], [("users", "whoever has a pencil")], [("way out", "by hand")], [])

    def access_report(self, plan: PaperPlan, deployers: str) -> AccessReport:
        return Report(plan.stack)

    def deploy(self, plan: PaperPlan, folder: Path) -> dict[str, Any]:
        import pulumi

        from components.plan.show import json_text
        from components.runs import Run, RunProvider

        if not pulumi.runtime.is_dry_run():
            (folder / plan.sheet).write_text(json_text(plan))
        provider = RunProvider("runs", {}) if plan.jobs else None
        options = pulumi.ResourceOptions(provider=provider, delete_before_replace=True)
        runs = {
            f"{name}/{key}": Run(f"{name}/{key}", run_inputs(plan, name, run, folder), options)
            for name, job in plan.jobs.items()
            for key, run in job.runs.items()
        }
        return {"sheet": plan.sheet, "desk": plan.desk, "states": {name: run.state for name, run in runs.items()}}

    @property
    def run_inputs(self) -> OwnInputs:
        from components.paper.runs import INPUTS

        return INPUTS

    def knows(self, run_id: str) -> bool:
        from components.paper.runs import PREFIX

        return run_id.startswith(PREFIX)

    def runs(self, config: Properties) -> Runs:
        from components.paper.runs import PaperRuns

        return PaperRuns(str(config["desk"]))

    def runs_of_caller(self, where: Where) -> Runs:
        from components.paper.runs import PaperRuns

        return PaperRuns(where.place or str(where.config["trainyard:desk"]))

    def files(self, request: StoreRequest) -> StoreOpener:
        from components.paper.files import make

        return make(request)


def run_inputs(plan: PaperPlan, job: str, run: RunPlan, folder: Path) -> dict[str, Any]:
    python = [sys.executable]
    return {
        "platform": plan.platform,
        "desk": plan.desk,
        "displayName": run.display_name,
        "tags": {**plan.tags, "stack": plan.stack, "job": job, "run": run.name},
        "nodes": [
            {"name": node.name, "role": node.role, "rank": node.rank, "arguments": python + node.launch["command"]}
            for node in run.nodes
        ],
        "until": run.until,
        "attempt": run.attempt,
    }


PLATFORM = PaperPlatform()
