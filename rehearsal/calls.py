# SPDX-License-Identifier: Apache-2.0
"""The calls that were made, how the policies decided them, and how other policies would have decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from components.oci import iam
from components.oci.iam.clock import time_variables
from components.oci.iam.compartments import Compartments
from components.oci.iam.judge import AttachedPolicy, Membership, Principal, Target, compile_policies, judge
from components.oci.iam.parse import parse

if TYPE_CHECKING:
    from rehearsal.mutations import StatementMutation


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """A policy in force, with the texts of its statements. `compartment`: where it is attached, if that is a place."""

    name: str
    compartment: str
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AccessFacts:
    """`Grounds` of policies that are sentences: everything that decides about access besides the call itself."""

    policies: tuple[PolicyInForce, ...]
    compartments: Compartments
    region_key: str

    def refused(self, calls: Sequence[RecordedCall], policies: Iterable[PolicyInForce]) -> tuple[LostCall, ...]:
        return newly_refused(calls, self, policies)

    def mutations(self) -> Iterator[StatementMutation]:
        from rehearsal.mutations import statement_mutations

        return statement_mutations(self.policies)

    def inferred(self, call: RecordedCall) -> tuple[str, ...]:
        return inferred(call)


class Grounds(Protocol):
    """What decides about access besides the call itself. Each platform has policies of its own language."""

    @property
    def policies(self) -> tuple[PolicyInForce, ...]: ...

    def refused(self, calls: Sequence[RecordedCall], policies: Iterable[PolicyInForce]) -> tuple[LostCall, ...]:
        """The calls that were allowed, but that these policies would refuse."""

    def mutations(self) -> Iterator[StatementMutation]:
        """Changes of one statement each."""

    def inferred(self, call: RecordedCall) -> tuple[str, ...]:
        """The permissions of a call that no document names."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One kind of call: who called what, how often, and which statements (`by`) allowed it.

    `principal` and `target` are the platform's own: only its `Grounds` read them.
    """

    operation: str
    principal: Any
    who: str
    permissions: tuple[str, ...]
    target: Any
    times: int
    allowed: bool
    by: tuple[tuple[str, str, str], ...]
    missing: tuple[str, ...]
    at: datetime

    def rests_on(self, policy: str, statement: str) -> bool:
        return any((name, text) == (policy, statement) for _, name, text in self.by)


def read_call(row: Mapping[str, Any], names: Mapping[str, str]) -> RecordedCall:
    """Reads a row of the local cloud's record. `names` are the names of principals in reports, by OCID."""
    fields = row["principal"]
    principal = Principal(
        type=fields["type"], ocid=fields["id"], name=fields["name"], compartment=fields["compartment"],
        groups=_members(fields["groups"]), dynamic_groups=_members(fields["dynamicGroups"]),
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
    """The calls that were allowed, but that these policies would refuse."""
    compiled = compile_policies(
        (AttachedPolicy(one.name, one.compartment, tuple(map(parse, one.statements))) for one in policies),
        grounds.compartments,
    )
    refused = []
    for call in calls:
        if call.allowed:
            request = {
                "request.operation": call.operation, "request.region": grounds.region_key, **time_variables(call.at),
            }  # fmt: skip
            verdict = judge(compiled, call.principal, call.permissions, call.target, request)
            if not verdict.allowed:
                refused.append(LostCall(call, verdict.missing))
    return tuple(refused)


def inferred(call: RecordedCall) -> tuple[str, ...]:
    """The permissions of a call that no document names. For these the catalog guesses, and so does the decision."""
    from components.oci.iam.permissions import is_documented

    return tuple(name for name in call.permissions if not is_documented(name))


def canonical(text: str) -> str:
    """The canonical text of a statement: equal for equal statements."""
    return iam.to_text(parse(text))
