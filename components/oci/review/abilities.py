# SPDX-License-Identifier: Apache-2.0
"""Computes who may do what by the policies of snapshots, for every principal, permission and resource that any policy
names.

Permissions that the same statements grant are evaluated once. A condition is evaluated with every value that any side
names for its variables, with another value, and with none (components/platform/circumstances.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.tables import table
from components.oci.iam.judge import (
    EVERYTHING,
    CompiledPolicies,
    CompiledStatement,
    Membership,
    Principal,
    Target,
    judge_request,
)
from components.oci.iam.permissions import resource_types, type_of
from components.oci.iam.statement import VERBS, Identified, Named, Subject
from components.oci.review.access import (
    REST,
    Places,
    Side,
    compile_side,
    places_of,
    read_side,
    stands_for,
    types_without_permissions,
)
from components.oci.review.conditions import PERMISSION, comparisons_in, members_by_side, values_to_test
from components.oci.types.oci_resource_type import OciResourceType
from components.platform.circumstances import (
    OTHER,
    Circumstances,
    combine_circumstances,
    described_resource,
    settled_variables,
)
from components.platform.review import EVERYBODY, UNREAD, Ability, Snapshot

PUBLIC = "the whole internet, without signing in,"
BY_LINK = "whoever has the link"
READ = "READ"
# Variables that follow from the target of the request.
_OF_PLACE = frozenset({"target.compartment.id", PERMISSION})


@dataclass(frozen=True)
class _Question:
    """Common inputs of all sides: the policies of each, the places, and names by kind. If any statement depends on the
    name of a kind, names of that kind are distinguished for all principals."""

    policies: tuple[CompiledPolicies, ...]
    places: Places
    permissions: tuple[str, ...]
    names: Mapping[str, tuple[str | None, ...]]


def evaluate_abilities(sides: Sequence[Snapshot]) -> tuple[frozenset[Ability], ...]:
    access = [read_side(side) for side in sides]
    others, places = types_without_permissions(access), places_of(sides, access)
    made = [compile_side(side, places, others) for side in access]
    # The permissions to evaluate: those of the catalog, those that statements list, and made-up ones for verbs.
    known = {name for kind in resource_types().values() for name in kind.covers["manage"]}
    listed = {
        name
        for side in access
        for policy in side.policies
        for one in policy.statements
        for name in getattr(one.grant, "permissions", ())
    }
    stand_ins = {stands_for(verb, word) for verb in VERBS for word in (*others, REST)}
    question = _Question(
        tuple(policies for policies, _ in made),
        places,
        tuple(sorted(known | listed | stand_ins)),
        _names_to_evaluate(sides, access),
    )
    found: list[set[Ability]] = [set() for _ in sides]
    for principal, title in _principals_to_evaluate(access):
        for number, ability in _abilities_of_principal(question, principal, title):
            found[number].add(ability)
    for number, ability in members_by_side([side.members for side in access], places):
        found[number].add(ability)
    for number, side in enumerate(sides):
        unread = (*access[number].unread, *made[number][1])
        found[number] |= {Ability(UNREAD, READ, text) for text in unread}
        found[number] |= set(_public_abilities(side))
    return tuple(map(frozenset, found))


def _names_to_evaluate(sides: Iterable[Snapshot], access: Iterable[Side]) -> dict[str, tuple[str | None, ...]]:
    """The names to evaluate for each kind that statements narrow by name: those in statements, and those of stacks."""
    conditions = [one.condition for side in access for policy in side.policies for one in policy.statements]
    found: dict[str, set[str]] = defaultdict(set)
    for side in sides:
        for resource, row in side.with_rows():
            if (
                isinstance(row, OciResourceType)
                and row.statement_kind
                and (name := resource.inputs.get(row.name_input))
            ):
                found[row.statement_kind].add(str(name).lower())
        for kind_name, what, key in (("bucket", "bucket", "name"), ("repository", "registry", "repository")):
            if name := (side.plan.get(what) or {}).get(key):
                found[kind_name].add(str(name).lower())
    tried = values_to_test(conditions)
    return {
        kind["name"]: (*sorted({*found[kind["name"]], *filter(None, tried[kind["variable"]])}), None)
        for kind in table("oci_review")["kind"]
        if kind["variable"] in tried
    }


def _principals_to_evaluate(access: Iterable[Side]) -> Iterator[tuple[Principal, str]]:
    """Every subject that a statement names, and everybody. Upper and lower case do not matter."""
    seen: dict[Any, tuple[Principal, str]] = {"any-user": (Principal("user"), EVERYBODY)}
    for subject in (one.subject for side in access for policy in side.policies for one in policy.statements):
        if subject.kind == "any-group":
            anybody = Principal("user", groups=(Membership("", OTHER),))
            seen.setdefault(subject.kind, (anybody, "every member of any group"))
        for member in subject.members:
            key: tuple[str, ...] = (subject.kind, getattr(member, "ocid", "").lower())
            if isinstance(member, Named):
                key = subject.kind, (member.domain or "default").lower(), member.name.lower()
            seen.setdefault(key, _principal_of_member(subject, member))
    yield from seen.values()


def _principal_of_member(subject: Subject, member: Named | Identified) -> tuple[Principal, str]:
    if isinstance(member, Identified):
        row, named = Membership(member.ocid, OTHER), member.ocid
    else:
        own = member.domain if member.domain and member.domain.lower() != "default" else None
        row, named = Membership("", member.name, own or "Default"), f"{own}/{member.name}" if own else member.name
    match subject.kind:
        case "service":
            return Principal("service", name=named), f"the service {named.lower()}"
        case "group":
            return Principal("user", groups=(row,)), f"group {named.lower()}"
        case _:
            return Principal("resource", dynamic_groups=(row,)), f"dynamic group {named.lower()}"


def _abilities_of_principal(question: _Question, principal: Principal, title: str) -> Iterator[tuple[int, Ability]]:
    alike: dict[Any, list[str]] = defaultdict(list)
    rules_of: dict[Any, tuple[tuple[CompiledStatement, ...], ...]] = {}
    indexed = [policies.index.get(key, {}) for policies in question.policies for key in principal.keys]
    asked = sorted({permission for rows in indexed for permission in rows})
    for permission in question.permissions if EVERYTHING in asked else asked:
        rules = tuple(tuple(policies.rules(principal, permission)) for policies in question.policies)
        if not any(rules):
            continue
        kind = _kind_of_permission(permission)
        conditions = (rule.statement.condition for side in rules for rule in side)
        by_name = PERMISSION in {leaf.variable.lower() for each in conditions for leaf in comparisons_in(each)}
        key = (kind and kind["name"], tuple(tuple(map(id, side)) for side in rules), permission if by_name else "")
        alike[key].append(permission)
        rules_of[key] = rules
    for key, permissions in alike.items():
        for number, resource in _granted_resources(question, principal, permissions[0], rules_of[key]):
            yield from ((number, Ability(title, permission, resource)) for permission in permissions)


def _kind_of_permission(permission: str) -> Mapping[str, Any] | None:
    resource_type = type_of(permission)
    return next((one for one in table("oci_review")["kind"] if resource_type in one["types"]), None)


def _granted_resources(
    question: _Question, principal: Principal, permission: str, rules: Sequence[Sequence[CompiledStatement]]
) -> Iterator[tuple[int, str]]:
    """The resources on which each side grants the permission, in words."""
    kind = _kind_of_permission(permission)
    tried = values_to_test(rule.statement.condition for side in rules for rule in side)
    of_place = [name for name in tried if name in _OF_PLACE]
    # Variables that only requests for other kinds of resource have.
    own = tuple(kind["own"]) if kind else ("-",)
    others = tuple(start for kind in table("oci_review")["kind"] for start in kind["own"])
    for name in tried:
        if name.startswith(others) and not name.startswith(own):
            tried[name] = (None,)
    if kind and kind["name"] in question.names:
        tried[kind["variable"]] = question.names[kind["name"]]
    for name in of_place:
        del tried[name]
    rounds = [
        (circumstances, {name: value for name, value in circumstances.items() if value is not None})
        for circumstances in combine_circumstances(tried)
    ]
    for place, place_name in question.places.names.items():
        # The sides that grant the permission, in each of the circumstances.
        outcomes = [
            (
                circumstances,
                tuple(
                    number
                    for number, policies in enumerate(question.policies)
                    if rules[number] and judge_request(policies, principal, (permission,), Target(place, given)).allowed
                ),
            )
            for circumstances, given in rounds
        ]
        # A resource's name is always shown if statements depend on it.
        left_out = settled_variables(outcomes, tried) - {kind["variable"] if kind else ""}
        for circumstances, granting in outcomes:
            remaining = {name: value for name, value in circumstances.items() if name not in left_out}
            yield from ((number, _resource_in_words(kind, place_name, remaining)) for number in granting)


def _resource_in_words(kind: Mapping[str, Any] | None, place: str, circumstances: Circumstances) -> str:
    if kind is None:
        return described_resource(place, _relevant_circumstances(circumstances))
    rest = {name: value for name, value in circumstances.items() if name != kind["variable"]}
    if kind["variable"] not in circumstances:
        what = f"any {kind['name']}"
    elif (name := circumstances[kind["variable"]]) is None:
        what = f"no certain {kind['name']}"
    else:
        what = f"any other {kind['name']}" if name == OTHER else f"{kind['name']} {name.replace(OTHER, '…')}"
    return described_resource(f"{what} in {place}", _relevant_circumstances(rest))


def _relevant_circumstances(circumstances: Circumstances) -> Circumstances:
    """The circumstances without variables that such a request never has."""
    others = tuple(start for kind in table("oci_review")["kind"] for start in kind["own"])
    return {name: one for name, one in circumstances.items() if one is not None or not name.startswith(others)}


def _public_abilities(side: Snapshot) -> Iterator[Ability]:
    """Public access by the settings of buckets and repositories."""
    for bucket in side.of_part("bucket"):
        name, access = bucket.inputs.get("name"), str(bucket.inputs.get("accessType") or "NoPublicAccess")
        if access != "NoPublicAccess":
            yield Ability(PUBLIC, "OBJECT_READ", f"bucket {name}")
        if access == "ObjectRead":
            yield Ability(PUBLIC, "OBJECT_INSPECT", f"bucket {name}")
    for repository in side.of_part("repository"):
        if repository.inputs.get("isPublic") not in (None, False, "false"):
            yield Ability(PUBLIC, "REPOSITORY_READ", f"repository {repository.inputs.get('displayName')}")
    for link in side.of_part("access link"):
        access = str(link.inputs.get("accessType"))
        on = f"bucket {link.inputs.get('bucket')} {link.inputs.get('object') or ''}".strip()
        needed = {"OBJECT_READ"} if "Read" in access else set()
        needed |= {"OBJECT_CREATE", "OBJECT_OVERWRITE"} if "Write" in access else set()
        yield from (Ability(BY_LINK, one, on) for one in needed or {"OBJECT_READ"})
