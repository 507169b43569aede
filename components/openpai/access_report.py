# SPDX-License-Identifier: Apache-2.0
"""The report of `trainyard access`: what a stack's user needs of the cluster's administrators."""

from __future__ import annotations

from dataclasses import dataclass

from components.openpai.plan import OpenPaiPlan
from components.plan.platform import AccessReporting


@dataclass(frozen=True, slots=True)
class OpenPaiAccessReport:
    """OpenPAI grants by groups, virtual clusters and storages."""

    stack: str
    user: str
    needed: tuple[str, ...]

    def text(self) -> str:
        head = f"{self.stack}: OpenPAI's administrators grant access, by groups. What {self.user} needs:"
        return "\n".join((head, *(f"  - {one}" for one in self.needed)))


def report_openpai_access(plan: OpenPaiPlan, deployers: str) -> OpenPaiAccessReport:
    grants = (f"{one.who} {one.does} {one.what} of `{one.target}`: {one.why}" for one in plan.access.grants)
    needed = ("a token: the portal makes one, under `View profile`", *grants)
    return OpenPaiAccessReport(plan.stack, plan.cluster.user, needed)


ACCESS_REPORTING = AccessReporting(report_openpai_access)
