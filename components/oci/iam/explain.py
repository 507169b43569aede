# SPDX-License-Identifier: Apache-2.0
"""Explains why a request was refused, and which statement would have granted it."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from components.oci.iam.evaluate import variables_in
from components.oci.iam.judge import DEFAULT_DOMAIN, CompiledPolicies, Membership, Principal, Target, request_variables
from components.oci.iam.permissions import smallest_grant_for, type_of
from components.oci.iam.printing import to_text
from components.oci.iam.statement import (
    AllOf,
    Comparison,
    CompartmentId,
    Condition,
    Grant,
    Named,
    PermissionGrant,
    Statement,
    StatementError,
    Subject,
    Tenancy,
    Text,
    equals_text,
)

# A proposed statement is narrowed by these variables, if the request has them.
_NARROWING = ("target.bucket.name", "target.repo.name")


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A statement that names the principal and the permission, and why it did not apply."""

    policy: str
    statement: Statement
    why: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """The missing permissions, who lacks them, the statements that almost applied, and those that would grant them."""

    principal: Principal
    missing: tuple[str, ...]
    near: tuple[NearMiss, ...]
    remedies: tuple[Statement, ...]

    def text(self) -> str:
        """The refusal in plain words, several lines."""
        who = self.principal.name or self.principal.ocid or self.principal.type
        lines = [f"{self.principal.type} {who} lacks {', '.join(self.missing)}"]
        lines += [f"does not apply ({miss.policy}): {to_text(miss.statement)}: {miss.why}" for miss in self.near]
        lines += [f"would grant it: {to_text(statement)}" for statement in self.remedies]
        return "\n".join(lines)


def _group_member(row: Membership) -> tuple[Named, ...]:
    return (Named(row.name, None if row.domain.lower() == DEFAULT_DOMAIN.lower() else row.domain),)


def _subject_of_principal(principal: Principal) -> tuple[Subject, tuple[Condition, ...]]:
    """The subject for this principal. If it is in no group, a condition excludes all others."""
    if principal.type == "service":
        return Subject("service", (Named(principal.name),)), ()
    if principal.groups:
        return Subject("group", _group_member(principal.groups[0])), ()
    if principal.dynamic_groups:
        return Subject("dynamic-group", _group_member(principal.dynamic_groups[0])), ()
    if principal.ocid:
        return Subject("any-user"), (equals_text("request.principal.id", principal.ocid),)
    return Subject("any-user"), (equals_text("request.principal.type", principal.type),)


def explain_refusal(
    policies: CompiledPolicies,
    principal: Principal,
    missing: tuple[str, ...],
    target: Target,
    request: Mapping[str, str] | None = None,
) -> Refusal:
    """Explains why permissions are missing, and proposes statements that grant them."""
    variables = {*request_variables(policies, principal, target, request or {}), "request.permission"}
    near = {}
    for rule in (rule for permission in missing for rule in policies.rules(principal, permission)):
        condition = rule.statement.condition
        absent = sorted(variables_in(condition) - variables) if condition else []
        why = f"the request has no {', '.join(absent)}" if absent else "its condition does not hold"
        if rule.scope not in policies.lineage(target.compartment):
            why = "another compartment"
        near[id(rule)] = NearMiss(rule.policy, rule.statement, why)
    by_type: dict[str | None, set[str]] = {}
    for permission in missing:
        by_type.setdefault(type_of(permission), set()).add(permission)
    values = {name.lower(): value for name, value in target.variables.items()}
    remedies: list[Statement] = []
    # If a name of the request cannot be written in a statement, there are no remedies.
    with suppress(StatementError):
        where = Tenancy() if target.compartment == policies.compartments.root else CompartmentId(target.compartment)
        subject, only_them = _subject_of_principal(principal)
        narrowing = (name for name in _NARROWING if "'" not in values.get(name, "'"))
        conditions = (*only_them, *(Comparison(name, "=", (Text(values[name]),)) for name in narrowing))
        joined = None if not conditions else conditions[0] if len(conditions) == 1 else AllOf(conditions)
        grants: list[Grant] = [
            PermissionGrant(tuple(sorted(names))) if kind is None else smallest_grant_for(kind, frozenset(names))
            for kind, names in by_type.items()
        ]
        remedies = [Statement(subject, grant, where, joined) for grant in grants]
    return Refusal(principal, missing, tuple(near.values()), tuple(remedies))
