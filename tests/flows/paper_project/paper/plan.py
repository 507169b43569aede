# SPDX-License-Identifier: Apache-2.0
"""The plan on paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from components.paper.stack import PaperStack

from components.plan.model import Plan, extend_plan
from components.plan.platform import Planning, Rendezvous, Words
from components.plan.ports import ResolvedJob


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperPlan(Plan):
    sheet: str
    desk: str


def lower(stack: PaperStack, plan: Plan, jobs: Mapping[str, ResolvedJob]) -> PaperPlan:
    return extend_plan(PaperPlan, plan, sheet=stack.sheet, desk=stack.desk)


PLANNING = Planning(
    way_to_services="by hand",
    lower=lower,
    rendezvous=lambda layout: Rendezvous("bucket", "addresses stand on the same sheet"),
    words=lambda plan: Words(
        [("sheet", plan.sheet)], [("users", "whoever has a pencil")], [("way out", "by hand")], []
    ),
)
