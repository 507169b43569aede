# SPDX-License-Identifier: Apache-2.0
"""Finds the least that must be granted for the API operations that somebody calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from catalog.tables import table
from components.oci import iam
from components.oci.iam.permissions import operations, verb_covers
from components.oci.iam.statement import VERBS


class Need:
    """What one statement has to cover, collected from several grants."""

    def __init__(self) -> None:
        self.permissions: frozenset[str] = frozenset()
        self.why: list[str] = []
        self.trusts: list[iam.Trust] = []


def permissions_for(does_what: str) -> Iterator[tuple[str, frozenset[str], iam.Trust]]:
    for named in table("oci_access")["operations"][does_what]:
        yield from permissions_of(named)


def permissions_of(named: str) -> Iterator[tuple[str, frozenset[str], iam.Trust]]:
    """`Operation`, or what `Operation:circumstance` takes on top, as (resource type, permissions, trust)."""
    name, circumstance = named, ""
    if name not in operations():
        name, _, circumstance = named.rpartition(":")
    operation = iam.operation(name)
    needed = operation.conditional[circumstance] if circumstance else operation.permissions
    for resource_type, permissions in iam.by_resource_type(needed).items():
        yield resource_type, permissions, operation.trust


def smallest_grant(resource_type: str, need: Need) -> iam.Grant:
    """A list of single permissions if documents name them all, else the verb that covers them."""
    grant = iam.smallest(resource_type, need.permissions)
    if isinstance(grant, iam.PermissionGrant) and weakest_trust(need.trusts) != "documented":
        verb = next(verb for verb in VERBS if need.permissions <= verb_covers(verb, resource_type))
        return iam.VerbGrant(verb, resource_type, "documented")
    return grant


def weakest_trust(trusts: Iterable[iam.Trust]) -> iam.Trust:
    order: tuple[iam.Trust, ...] = ("documented", "mixed", "inferred")
    return max(trusts, key=order.index, default="documented")
