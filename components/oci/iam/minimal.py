# SPDX-License-Identifier: Apache-2.0
"""Finds the smallest grant that covers what is needed."""

from components.oci.iam.permissions import families, grants, operation, resource_types, verb_covers
from components.oci.iam.statement import VERBS, Grant, PermissionGrant, Trust, Verb, VerbGrant
from components.oci.iam.wildcards import StatementError, nearest

__all__ = ["grants", "operation", "smallest"]


def _kinds(resource_type: str) -> tuple[str, ...]:
    members = families().get(resource_type, (resource_type,))
    kinds = tuple(name for name in members if name in resource_types())
    if not kinds:
        words = (*resource_types(), *families())
        raise StatementError(
            f"`{resource_type}`: its permissions are not in the catalog{nearest(resource_type, words)}"
        )
    return kinds


def _verb_trust(kinds: tuple[str, ...], needed: frozenset[str], documented: frozenset[str]) -> Trust:
    """How sure a verb's grant is: as sure as the names of the permissions, and as their place under the verb."""
    placed = all(
        kind.placement == "documented" or not (needed & kind.covers["manage"])
        for kind in (resource_types()[name] for name in kinds)
    )
    if placed and needed <= documented:
        return "documented"
    return "mixed" if needed & documented else "inferred"


def smallest(resource_type: str, needed: frozenset[str]) -> Grant:
    """The least grant on one resource type that covers `needed`.

    This is a verb, if it grants exactly that. Otherwise it is a list of the permissions, if a document names all of
    them. Otherwise it is the smallest verb that covers them.
    """
    kinds = _kinds(resource_type)
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
