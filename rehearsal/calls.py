# SPDX-License-Identifier: Apache-2.0
"""What the policies decided, and what they would have decided with other statements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import iam
from iam.clock import time_variables
from iam.compartments import Compartments
from iam.judge import AttachedPolicy, Membership, Principal, Target, compile_policies, judge
from iam.parse import parse


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """A policy in force, as its statements' texts. `compartment` is what it is attached to."""

    name: str
    compartment: str
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AccessFacts:
    """Everything a decision rests on besides the call itself."""

    policies: tuple[PolicyInForce, ...]
    compartments: Compartments
    region_key: str


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One kind of call: who, what on what, how often, and by which statements it was allowed."""

    operation: str
    principal: Principal
    who: str
    permissions: tuple[str, ...]
    target: Target
    times: int
    allowed: bool
    by: tuple[tuple[str, str, str], ...]
    missing: tuple[str, ...]
    at: datetime

    def rests_on(self, policy: str, statement: str) -> bool:
        return any((name, text) == (policy, statement) for _, name, text in self.by)


def read_call(row: Mapping[str, Any], names: Mapping[str, str]) -> RecordedCall:
    """A row of the local cloud's record; `names` says what a report calls a principal."""
    told = row["principal"]
    principal = Principal(
        type=told["type"], ocid=told["id"], name=told["name"], compartment=told["compartment"],
        groups=_members(told["groups"]), dynamic_groups=_members(told["dynamicGroups"]),
    )  # fmt: skip
    return RecordedCall(
        operation=row["operation"],
        principal=principal,
        who=names.get(principal.ocid) or f"{principal.type} {principal.name or principal.ocid}",
        permissions=tuple(row["permissions"]),
        target=Target(row["target"]["compartment"], row["target"]["variables"]),
        times=int(row["times"]),
        allowed=bool(row["allowed"]),
        by=tuple((one["permission"], one["policy"], one["statement"]) for one in row["by"]),
        missing=tuple(row["missing"]),
        at=datetime.fromisoformat(row["time"]),
    )


def _members(rows: Iterable[Mapping[str, str]]) -> tuple[Membership, ...]:
    return tuple(Membership(row["id"], row["name"], row["domain"]) for row in rows)


@dataclass(frozen=True, slots=True)
class LostCall:
    """A call that would have been refused, and the permissions it would have lacked."""

    call: RecordedCall
    missing: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{self.call.who} lacks {', '.join(self.missing)} for {self.call.operation}"


def newly_refused(
    calls: Sequence[RecordedCall], grounds: AccessFacts, policies: Iterable[PolicyInForce]
) -> tuple[LostCall, ...]:
    """Of the calls that were allowed, those which these policies would refuse."""
    compiled = compile_policies(
        (AttachedPolicy(one.name, one.compartment, tuple(map(parse, one.statements))) for one in policies),
        grounds.compartments,
    )
    found = []
    for call in calls:
        if call.allowed:
            request = {
                "request.operation": call.operation, "request.region": grounds.region_key, **time_variables(call.at),
            }  # fmt: skip
            verdict = judge(compiled, call.principal, call.permissions, call.target, request)
            if not verdict.allowed:
                found.append(LostCall(call, verdict.missing))
    return tuple(found)


def inferred(call: RecordedCall) -> tuple[str, ...]:
    """The permissions of a call that no document names: the verdict on it rests on a guess of the catalog's."""
    from iam.permissions import is_documented

    return tuple(name for name in call.permissions if not is_documented(name))


def canonical(text: str) -> str:
    """Equal statements as equal texts."""
    return iam.to_text(parse(text))
