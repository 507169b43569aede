# SPDX-License-Identifier: Apache-2.0
"""OCI's policy statements in a rehearsal: how other policies would have decided about the calls, and mutations of each
statement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from components.oci import iam
from components.oci.iam.evaluate import time_variables
from components.oci.iam.judge import (
    AttachedPolicy,
    Compartments,
    Membership,
    Principal,
    Target,
    compile_policies,
    judge_request,
)
from components.oci.iam.parse import parse_statement
from components.oci.iam.permissions import is_documented, verb_covers
from components.oci.iam.statement import VERBS
from components.platform.evidence import LostCall, PolicyInForce, RecordedCall, StatementMutation, read_decision


@dataclass(frozen=True, slots=True)
class OciAccessFacts:
    """`components.platform.evidence.AccessFacts`: everything that decides about access besides the call itself."""

    policies: tuple[PolicyInForce, ...]
    compartments: Compartments
    region_key: str

    def refused(self, calls: Sequence[RecordedCall], policies: Iterable[PolicyInForce]) -> tuple[LostCall, ...]:
        return newly_refused(calls, self, policies)

    def mutations(self) -> Iterator[StatementMutation]:
        return statement_mutations(self.policies)

    def inferred(self, call: RecordedCall) -> tuple[str, ...]:
        return inferred_permissions(call)


def read_recorded_call(row: Mapping[str, Any], names: Mapping[str, str]) -> RecordedCall:
    """Reads a row of the local cloud's record. `names` are the names of principals in reports, by OCID."""
    fields = row["principal"]
    principal = Principal(
        type=fields["type"], ocid=fields["id"], name=fields["name"], compartment=fields["compartment"],
        groups=_memberships(fields["groups"]), dynamic_groups=_memberships(fields["dynamicGroups"]),
    )  # fmt: skip
    who = names.get(principal.ocid) or f"{principal.type} {principal.name or principal.ocid}"
    target = Target(row["target"]["compartment"], row["target"]["variables"])
    return read_decision(row, principal, who, target, row["missing"])


def _memberships(rows: Iterable[Mapping[str, str]]) -> tuple[Membership, ...]:
    return tuple(Membership(row["id"], row["name"], row["domain"]) for row in rows)


def newly_refused(
    calls: Sequence[RecordedCall], facts: OciAccessFacts, policies: Iterable[PolicyInForce]
) -> tuple[LostCall, ...]:
    """The calls that were allowed, but that these policies would refuse."""
    compiled = compile_policies(
        (AttachedPolicy(one.name, one.place, tuple(map(parse_statement, one.statements))) for one in policies),
        facts.compartments,
    )
    refused = []
    for call in calls:
        if call.allowed:
            request = {
                "request.operation": call.operation, "request.region": facts.region_key, **time_variables(call.at),
            }  # fmt: skip
            verdict = judge_request(compiled, call.principal, call.permissions, call.target, request)
            if not verdict.allowed:
                refused.append(LostCall(call, verdict.missing))
    return tuple(refused)


def inferred_permissions(call: RecordedCall) -> tuple[str, ...]:
    """The permissions of a call that no document names. For these, the catalog and the decision are inferred."""
    return tuple(name for name in call.permissions if not is_documented(name))


def canonical_statement(text: str) -> str:
    """The canonical text of a statement: equal for equal statements."""
    return iam.to_text(parse_statement(text))


def statement_mutations(policies: Sequence[PolicyInForce]) -> Iterator[StatementMutation]:
    subjects = list(dict.fromkeys(parse_statement(text).subject for policy in policies for text in policy.statements))
    for policy in policies:
        for text in policy.statements:
            yield StatementMutation("deleted", policy.name, text, None, f"without `{text}`")
            statement = parse_statement(text)
            grant = wider_grant(statement.grant)
            if grant is not None:
                wider = iam.to_text(replace(statement, grant=grant))
                yield StatementMutation("widened", policy.name, text, wider, f"`{text}`: as {wider}")
            if statement.condition is not None:
                wider = iam.to_text(replace(statement, condition=None))
                yield StatementMutation("widened", policy.name, text, wider, f"`{text}`: without its condition")
            others = [subject for subject in subjects if subject != statement.subject and subject.kind != "service"]
            if others:
                after = iam.to_text(replace(statement, subject=others[0]))
                yield StatementMutation("turned around", policy.name, text, after, f"`{text}`: for another, `{after}`")


def wider_grant(grant: iam.Grant) -> iam.Grant | None:
    """The grant with the next larger verb. For single permissions: the smallest verb that covers more than them."""
    if isinstance(grant, iam.PermissionGrant):
        needed = frozenset(grant.permissions)
        kinds = dict.fromkeys(kind for kind in map(iam.type_of, grant.permissions) if kind)
        for kind in kinds:
            for verb in VERBS:
                if needed < verb_covers(verb, kind):
                    return iam.VerbGrant(verb, kind)
        return None
    position = VERBS.index(grant.verb)
    return replace(grant, verb=VERBS[position + 1]) if position + 1 < len(VERBS) else None
