# SPDX-License-Identifier: Apache-2.0
"""Reads the policies and dynamic groups of snapshots. All sides share one set of compartments, so that they can be
compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from components.oci.iam.judge import AttachedPolicy, Compartments, CompiledPolicies, compile_policies
from components.oci.iam.matching import parse_rule
from components.oci.iam.parse import parse_statement
from components.oci.iam.permissions import ALL_RESOURCES, permissions_of_grant, resource_families, resource_types
from components.oci.iam.printing import to_text
from components.oci.iam.statement import (
    VERBS,
    CompartmentId,
    CompartmentName,
    Condition,
    Identified,
    Named,
    PermissionGrant,
    Statement,
    StatementError,
    Subject,
    VerbGrant,
)
from components.platform.review import UNKNOWN, ReviewedResource, Snapshot
from components.values.resource_types import types_of_part

_TENANCY = "ocid1.tenancy."
# Separates a compartment from the name of a child compartment whose OCID is not known.
_PATH = "/"
# Separates verb and resource type in a made-up permission.
_ON = "__"
# Resource types that no statement names.
REST = "everything-else"
ELSEWHERE = "ocid1.compartment.any-other"


@dataclass(frozen=True)
class Side:
    """One side's access. `unread`: texts that cannot be parsed here."""

    policies: tuple[AttachedPolicy, ...]
    members: Mapping[str, tuple[Condition, ...]]
    unread: tuple[str, ...]


@dataclass(frozen=True)
class Places:
    """`own`: the stack's compartment, if it is the same on all sides. `names`: the name of each place for people."""

    compartments: Compartments
    own: str
    names: Mapping[str, str] = field(default_factory=dict)


def read_side(side: Snapshot) -> Side:
    unread: list[str] = []
    attached: dict[str, list[Statement]] = {}
    known = group_names((side,))
    for policy in side.of_part("policy"):
        place = str(policy.inputs.get("compartmentId") or UNKNOWN)
        for text in _texts_of_value(policy.inputs.get("statements")):
            try:
                attached.setdefault(place, []).append(_statement_by_name(parse_statement(text), known))
            except StatementError:
                unread.append(_without_line_breaks(text))
    members: dict[str, list[Condition]] = {}
    for group in side.of_part("matched group"):
        rule = str(group.inputs.get("matchingRule") or "")
        try:
            members.setdefault(_name_of_group(group), []).append(parse_rule(rule))
        except StatementError:
            unread.append(
                f"the matching rule of the dynamic group {_name_of_group(group)}: {_without_line_breaks(rule)}"
            )
    policies = tuple(AttachedPolicy("", place, tuple(rows)) for place, rows in attached.items())
    return Side(policies, {name: tuple(rules) for name, rules in members.items()}, tuple(dict.fromkeys(unread)))


def canonical_statements(side: Snapshot) -> tuple[str, ...]:
    """The statements in canonical form, so that equal ones compare equal. Unreadable ones keep their text."""
    return tuple(
        _canonical_text(text)
        for policy in side.of_part("policy")
        for text in _texts_of_value(policy.inputs.get("statements"))
    )


def side_without_statements(side: Snapshot, texts: frozenset[str]) -> Snapshot:
    def kept(policy: ReviewedResource) -> ReviewedResource:
        left = [text for text in _texts_of_value(policy.inputs.get("statements")) if _canonical_text(text) not in texts]
        return replace(policy, inputs={**policy.inputs, "statements": left})

    policies = types_of_part("policy")
    return replace(side, resources=tuple(kept(one) if one.type in policies else one for one in side.resources))


def _canonical_text(text: str) -> str:
    try:
        return to_text(parse_statement(text))
    except StatementError:
        return text


def _texts_of_value(value: Any) -> Iterator[str]:
    if isinstance(value, list | tuple):
        yield from map(str, value)
    elif value is not None:
        yield str(value)


def _without_line_breaks(text: str) -> str:
    return " ".join(text.split())


def _name_of_group(group: ReviewedResource) -> str:
    return str(group.inputs.get("name") or group.inputs.get("displayName") or group.name).lower()


def group_names(sides: Iterable[Snapshot]) -> dict[str, str]:
    """The names of dynamic groups that stacks make, by OCID: a statement may use either."""
    return {
        group.id.lower(): _name_of_group(group) for side in sides for group in side.of_part("matched group") if group.id
    }


def _statement_by_name(statement: Statement, known: Mapping[str, str]) -> Statement:
    members = tuple(
        Named(known[one.ocid.lower()]) if isinstance(one, Identified) and one.ocid.lower() in known else one
        for one in statement.subject.members
    )
    return replace(statement, subject=Subject(statement.subject.kind, members))


def places_of(sides: Sequence[Snapshot], read_sides: Iterable[Side]) -> Places:
    """Every compartment that is named anywhere, and one for all others.

    The real hierarchy is not known. A compartment that a policy names is assumed to be below that policy's compartment.
    A compartment's name and OCID are known to belong together only if the program makes it. Otherwise they count as two
    compartments, and the texts say so.
    """
    plans = [side.plan for side in sides]
    root = next((str(plan["tenancy"]) for plan in plans if plan.get("tenancy")), "")
    owns = {str(plan["compartment"]) for plan in plans if plan.get("compartment")}
    attached = [policy for side in read_sides for policy in side.policies]
    root = root or next((one.compartment for one in attached if one.compartment.startswith(_TENANCY)), f"{_TENANCY}own")
    made = {one.id: one for side in sides for one in side.of_part("folder") if one.id}
    parents = {ocid: str(one.inputs.get("compartmentId") or root) for ocid, one in made.items()}
    names = {ocid: str(one.inputs.get("name") or one.name) for ocid, one in made.items()}
    for ocid in (*owns, *(one.compartment for one in attached), ELSEWHERE):
        if not _is_root(ocid, root):
            parents.setdefault(ocid, root)
    for policy in attached:
        below = root if _is_root(policy.compartment, root) else policy.compartment
        for statement in policy.statements:
            match statement.location:
                case CompartmentId(ocid) if ocid not in (below, root) and ocid not in owns:
                    parents[ocid] = below
                case CompartmentName(path):
                    _add_path(path, below, parents, names)
    own = next(iter(owns)) if len(owns) == 1 else ""
    shown = {
        ocid: f"compartment {names.get(ocid, ocid)}{' (its OCID is not known here)' if _PATH in ocid else ''}"
        for ocid in parents
    }
    shown |= {root: "the tenancy itself", ELSEWHERE: "any other compartment"}
    if own:
        shown[own] = "the tenancy itself" if _is_root(own, root) else "the stack's compartment"
    return Places(Compartments(root, parents, names), own, shown)


def _is_root(ocid: str, root: str) -> bool:
    return ocid == root or ocid.startswith(_TENANCY)


def _add_path(path: tuple[str, ...], below: str, parents: dict[str, str], names: dict[str, str]) -> None:
    for part in path:
        known = (one for one, name in names.items() if parents[one] == below and name.lower() == part.lower())
        ocid = next(known, f"{below}{_PATH}{part.lower()}")
        parents[ocid], names[ocid] = below, part
        below = ocid


def compile_side(side: Side, places: Places, others: frozenset[str]) -> tuple[CompiledPolicies, tuple[str, ...]]:
    """The statements in force, and those that OCI would refuse in their compartment. `others`:
    `types_without_permissions` of all sides."""
    root = places.compartments.root
    policies = [
        AttachedPolicy(
            policy.name,
            root if _is_root(policy.compartment, root) else policy.compartment,
            tuple(replace(one, grant=_grant_as_permissions(one.grant, others)) for one in policy.statements),
        )
        for policy in side.policies
    ]
    idle = (
        to_text(one)
        for policy, written in zip(policies, side.policies, strict=True)
        for one in written.statements
        if places.compartments.resolve(one.location, policy.compartment) is None
    )
    return compile_policies(policies, places.compartments), tuple(dict.fromkeys(idle))


def types_without_permissions(sides: Iterable[Side]) -> frozenset[str]:
    """The resource types in statements whose permissions the catalog does not have."""
    return frozenset(
        name
        for side in sides
        for policy in side.policies
        for one in policy.statements
        if isinstance(one.grant, VerbGrant)
        for name in _without_permissions(one.grant.resource_type)
    )


def _without_permissions(resource_type: str) -> Iterator[str]:
    if resource_type != ALL_RESOURCES:
        members = resource_families().get(resource_type, (resource_type,))
        yield from (name for name in members if name not in resource_types())


def _grant_as_permissions(grant: Any, others: frozenset[str]) -> Any:
    """The grant as permissions. For a resource type without known permissions, verb and type become a made-up
    permission."""
    if isinstance(grant, PermissionGrant) or (grant.verb, grant.resource_type) == ("manage", ALL_RESOURCES):
        return grant
    everything = grant.resource_type == ALL_RESOURCES
    words = sorted(others | {REST}) if everything else list(_without_permissions(grant.resource_type))
    verbs = VERBS[: VERBS.index(grant.verb) + 1]
    extra = {stands_for(verb, word) for verb in verbs for word in words}
    return PermissionGrant(tuple(sorted(permissions_of_grant(grant) | extra)))


def stands_for(verb: str, resource_type: str) -> str:
    return f"{verb}{_ON}{resource_type}".upper().replace("-", "_")


def is_stand_in(permission: str) -> tuple[str, str] | None:
    """The verb and the resource type of a made-up permission."""
    verb, on, resource_type = permission.partition(_ON)
    return (verb.lower(), resource_type.lower().replace("_", "-")) if on else None
