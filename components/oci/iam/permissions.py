# SPDX-License-Identifier: Apache-2.0
"""The permissions of verbs and operations, from the catalog's tables, and the smallest grant that covers what is
needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from catalog.tables import table
from components.oci.iam.statement import (
    VERBS,
    Grant,
    PermissionGrant,
    StatementError,
    Trust,
    Verb,
    VerbGrant,
    nearest_word,
)

ALL_RESOURCES = "all-resources"


@dataclass(frozen=True, slots=True)
class ResourceType:
    """One kind of resource: everything that each verb covers, including smaller verbs, and how certain that is."""

    name: str
    covers: Mapping[Verb, frozenset[str]]
    documented: frozenset[str]
    placement: Trust
    source: str


@dataclass(frozen=True, slots=True)
class Operation:
    """The permissions that a call needs: all of `permissions`, and those of `conditional` whose circumstance is
    true."""

    name: str
    permissions: frozenset[str]
    conditional: Mapping[str, frozenset[str]]
    trust: Trust
    source: str


@cache
def resource_types() -> Mapping[str, ResourceType]:
    """Every resource type whose permissions are known, by name."""
    found = {}
    for name, row in table("permissions")["types"].items():
        covers: dict[Verb, frozenset[str]] = {}
        so_far: frozenset[str] = frozenset()
        for verb in VERBS:
            so_far |= frozenset(row.get(verb, "").split())
            covers[verb] = so_far
        documented = frozenset(row["documented"].split()) if "documented" in row else so_far
        placement: Trust = "inferred" if row.get("placement") == "inferred" else "documented"
        source = table("permissions")["sources"][row["source"]]
        found[name] = ResourceType(name, covers, documented, placement, source)
    return found


@cache
def resource_families() -> Mapping[str, tuple[str, ...]]:
    """Each family with its members; a member may be a type whose permissions are not known."""
    rows = table("permissions")["families"]
    named = {name: tuple(members.split()) for name, members in rows.items()}
    return named | {ALL_RESOURCES: tuple(resource_types())}


@cache
def known_words() -> frozenset[str]:
    """Every word that is allowed as a resource type."""
    tables = table("permissions")
    others = (word for row in tables["others"].values() for word in row.split())
    members = (word for row in resource_families().values() for word in row)
    return frozenset((*resource_types(), *resource_families(), *members, *others))


@cache
def type_of(permission: str) -> str | None:
    """The resource type that has this permission."""
    for name, kind in resource_types().items():
        if permission in kind.covers["manage"]:
            return name
    return None


def is_documented(permission: str) -> bool:
    """Whether Oracle's documents name the permission, so that a statement may contain it."""
    name = type_of(permission)
    return name is not None and permission in resource_types()[name].documented


@cache
def verb_covers(verb: Verb, resource_type: str) -> frozenset[str]:
    """The known permissions that `verb resource_type` grants; families count their members'."""
    kinds = resource_types()
    members = resource_families().get(resource_type, (resource_type,))
    return frozenset().union(*(kinds[name].covers[verb] for name in members if name in kinds))


def permissions_of_grant(grant: Grant) -> frozenset[str]:
    """The known permissions a statement's middle part grants."""
    if isinstance(grant, PermissionGrant):
        return frozenset(grant.permissions)
    return verb_covers(grant.verb, grant.resource_type)


def by_resource_type(permissions: Iterable[str]) -> dict[str, frozenset[str]]:
    """Permissions sorted by the resource type that has them: one statement each."""
    sorted_out: dict[str, set[str]] = {}
    for permission in sorted(permissions):
        name = type_of(permission)
        if name is None:
            raise StatementError(f"no resource type has the permission `{permission}`")
        sorted_out.setdefault(name, set()).add(permission)
    return {name: frozenset(names) for name, names in sorted_out.items()}


@cache
def known_operations() -> Mapping[str, Operation]:
    """Every operation whose permissions are known, by name."""
    tables = table("operations")
    also = tables["also"]
    return {
        name: Operation(
            name,
            frozenset(needs.split()),
            {when: frozenset(extra.split()) for when, extra in also.get(name, {}).items()},
            group["trust"],
            tables["sources"][group["source"]],
        )
        for group in tables["groups"]
        for name, needs in group["needs"].items()
    }


def find_operation(name: str) -> Operation:
    """The permissions that a call needs, by the operation's name."""
    try:
        return known_operations()[name]
    except KeyError:
        raise StatementError(
            f"`{name}` is not an operation in the catalog{nearest_word(name, known_operations())}"
        ) from None


def _verb_trust(kinds: tuple[str, ...], needed: frozenset[str], documented: frozenset[str]) -> Trust:
    """How certain a verb's grant is: it depends on the names of the permissions, and on whether they belong to the
    verb."""
    placed = all(
        kind.placement == "documented" or not (needed & kind.covers["manage"])
        for kind in (resource_types()[name] for name in kinds)
    )
    if placed and needed <= documented:
        return "documented"
    return "mixed" if needed & documented else "inferred"


def smallest_grant_for(resource_type: str, needed: frozenset[str]) -> Grant:
    """The least grant on one resource type that covers `needed`.

    This is a verb if it grants exactly that. Otherwise it is a list of the permissions, if a document names all of
    them. Otherwise it is the smallest verb that covers them.
    """
    members = resource_families().get(resource_type, (resource_type,))
    kinds = tuple(name for name in members if name in resource_types())
    if not kinds:
        words = (*resource_types(), *resource_families())
        raise StatementError(
            f"`{resource_type}`: its permissions are not in the catalog{nearest_word(resource_type, words)}"
        )
    if not needed:
        raise StatementError(f"`{resource_type}`: nothing is needed, so there is nothing to grant")
    strange = needed - verb_covers("manage", resource_type)
    if strange:
        raise StatementError(f"no verb on `{resource_type}` grants {', '.join(sorted(strange))}")
    verb: Verb = next(verb for verb in VERBS if needed <= verb_covers(verb, resource_type))
    documented = frozenset().union(*(resource_types()[name].documented for name in kinds))
    if verb_covers(verb, resource_type) != needed and needed <= documented:
        return PermissionGrant(tuple(sorted(needed)))
    return VerbGrant(verb, resource_type, _verb_trust(kinds, needed, documented))
