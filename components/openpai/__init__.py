# SPDX-License-Identifier: Apache-2.0
"""The plan on OpenPAI: checked, planned and shown so far; nothing is deployed yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from components.plan.platform import AccessReport, Meeting, Platform, Words
from schemas.model import Layout, Stack

if TYPE_CHECKING:
    from components.plan.model import Plan
    from components.plan.resolved import ResolvedJob


@dataclass(frozen=True, slots=True)
class OpenPaiAccessReport:
    """OpenPAI grants by groups and virtual clusters, which its administrators keep."""

    stack: str
    needed: tuple[str, ...]

    def text(self) -> str:
        head = f"{self.stack}: OpenPAI's administrators grant access, by groups and virtual clusters. What is needed:"
        return "\n".join((head, *(f"  - {one}" for one in self.needed)))


class OpenPaiPlatform(Platform):
    way_to_services = "over the cluster's network"

    def lower(self, stack: Stack, plan: Plan, jobs: Mapping[str, ResolvedJob]) -> Plan:
        return plan

    def meeting(self, layout: Layout) -> Meeting:
        return Meeting("openpai", "addresses and ports are those that OpenPAI tells each task")

    def words(self, plan: Plan) -> Words:
        return Words(
            place=[],
            principals=[("users", "whoever has a token of the cluster")],
            network=[("network", "the cluster's: tasks share the network of their hosts")],
            storage=[],
        )

    def access_report(self, plan: Plan, deployers: str) -> AccessReport:
        return OpenPaiAccessReport(
            plan.stack, tuple(f"{one.who} {one.does} {one.what}: {one.why}" for one in plan.access.grants)
        )


PLATFORM = OpenPaiPlatform()
