# SPDX-License-Identifier: Apache-2.0
"""The plan on OpenPAI: checked, planned and shown so far; nothing is deployed yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING

from components.plan.platform import AccessReport, Meeting, Words
from schemas.model import Layout, Run, Stack

if TYPE_CHECKING:
    from components.plan.launch import RolePart
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


class OpenPaiPlatform:
    way_to_services = "over the cluster's network"
    names_code = True

    def lower(self, stack: Stack, plan: Plan, jobs: Mapping[str, ResolvedJob]) -> Plan:
        return plan

    def circumstances(self, stack: Stack) -> frozenset[str]:
        return frozenset()

    def meeting(self, layout: Layout) -> Meeting:
        return Meeting("openpai", "addresses and ports are those that OpenPAI tells each task")

    def environments(
        self, job: ResolvedJob, part: RolePart, names: Mapping[str, str], run: Run, ranks: range
    ) -> Iterator[Mapping[str, str]]:
        return repeat({}, len(ranks))

    def group_environment(self, job: ResolvedJob) -> Mapping[str, str]:
        return {}

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

    def registry(self, plan: Plan, namespace: str) -> str:
        return plan.registry.repository


PLATFORM = OpenPaiPlatform()
