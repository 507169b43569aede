# SPDX-License-Identifier: Apache-2.0
"""The plan as jobs of OpenPAI. Nothing is imported before it is asked for: most commands need little."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.plan.platform import AccessReport, Meeting, Platform, Words
from schemas.model import Layout

if TYPE_CHECKING:
    from components.openpai.plan import OpenPaiPlan
    from components.openpai.stack import OpenPaiStack
    from components.plan.model import Plan
    from components.plan.resolved import ResolvedJob


class OpenPaiPlatform(Platform):
    way_to_services = "over the cluster's network"

    def lower(self, stack: OpenPaiStack, plan: Plan, jobs: Mapping[str, ResolvedJob]) -> OpenPaiPlan:
        from components.openpai.lower import lower

        return lower(stack, plan, jobs)

    def meeting(self, layout: Layout) -> Meeting:
        return Meeting("openpai", "addresses and ports are those that OpenPAI tells each task")

    def words(self, plan: OpenPaiPlan) -> Words:
        from components.openpai.words import words

        return words(plan)

    def access_report(self, plan: OpenPaiPlan, deployers: str) -> AccessReport:
        from components.openpai.access_report import build_report

        return build_report(plan)

    def deploy(self, plan: OpenPaiPlan, folder: Path) -> dict[str, Any]:
        from components.openpai.deploy import deploy

        return deploy(plan, folder)


PLATFORM = OpenPaiPlatform()
