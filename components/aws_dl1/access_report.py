# SPDX-License-Identifier: Apache-2.0
"""Who may do what under a plan, in words and as policy documents. Pure, for `trainyard access`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from components.aws_dl1.plan import AwsDl1Plan
from components.aws_dl1.statements import TRUST, policies
from components.plan.model import Grant


@dataclass(frozen=True, slots=True)
class AwsPolicyReport:
    """`principal`: who has it. `document` is empty where AWS's own policies are attached."""

    principal: str
    may: tuple[str, ...]
    document: Mapping[str, Any]
    managed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AwsAccessReport:
    stack: str
    mode: str
    made: bool
    granted_by: str | None
    policies: tuple[AwsPolicyReport, ...]
    trust: Mapping[str, Any]

    def text(self) -> str:
        return "\n".join(line for part in (_head(self), _words(self), _documents(self)) for line in part)


def build_report(plan: AwsDl1Plan) -> AwsAccessReport:
    taken = plan.uses if "access" in plan.taken else None
    policy_reports = tuple(
        AwsPolicyReport(_principal(plan, policy.who), _may(plan, policy.who), policy.document or {}, policy.managed)
        for policy in policies(plan)
    )
    return AwsAccessReport(plan.stack, plan.access.mode, plan.access.create, taken, policy_reports, TRUST)


def _principal(plan: AwsDl1Plan, who: str) -> str:
    access = plan.access
    if who == "runs":
        return f"role {access.runs_role}"
    return f"role {access.users_role}" if access.users_role else f"group {access.users_group or 'of administrators'}"


def _may(plan: AwsDl1Plan, who: str) -> tuple[str, ...]:
    return tuple(_in_words(grant) for grant in plan.access.grants if grant.who == who)


def _in_words(grant: Grant) -> str:
    return f"{grant.does} {grant.what}{f' of {grant.target}' if grant.target else ''}: {grant.why}"


def _head(report: AwsAccessReport) -> Iterator[str]:
    yield f"{report.stack}: access {report.mode}"
    if not report.made:
        by = f"by the stack {report.granted_by}" if report.granted_by else "outside"
        yield f"  This stack grants nothing: it is granted {by}. What has to be granted:"


def _words(report: AwsAccessReport) -> Iterator[str]:
    for policy in report.policies:
        yield ""
        yield f"{policy.principal} may"
        yield from (f"  - {one}" for one in policy.may)


def _documents(report: AwsAccessReport) -> Iterator[str]:
    for policy in report.policies:
        yield ""
        if policy.managed:
            yield f"Policies of AWS attached to {policy.principal}"
            yield from (f"  {name}" for name in policy.managed)
        if policy.document:
            yield f"Policy document of {policy.principal}"
            yield from (f"  {line}" for line in json.dumps(policy.document, indent=2).splitlines())
    yield ""
    yield "Who takes on the nodes' role"
    yield from (f"  {line}" for line in json.dumps(report.trust, indent=2).splitlines())
