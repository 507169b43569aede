# SPDX-License-Identifier: Apache-2.0
"""The Plan of AWS DL1: what every platform's says, and what only AWS has."""

from __future__ import annotations

from dataclasses import dataclass

from components.plan.model import AccessPlan, NetworkPlan, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsNetworkPlan(NetworkPlan):
    vpc: str | None
    security_group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsAccessPlan(AccessPlan):
    users_group: str | None
    users_role: str | None
    runs_role: str
    make_runs_role: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsDl1Plan(Plan):
    network: AwsNetworkPlan
    access: AwsAccessPlan
    account: str | None
