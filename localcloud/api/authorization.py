# SPDX-License-Identifier: Apache-2.0
"""Refuses a call whose caller lacks permissions. targets.py says what a call needs, access.py what a caller has."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from components.oci.iam.judge import Target
from components.oci.iam.wildcards import StatementError
from localcloud.api import clock, targets, tenancy
from localcloud.api.access import LATER
from localcloud.api.errors import not_found
from localcloud.api.http import Json
from localcloud.api.ocids import fixed_ocid
from localcloud.api.operations import ApiCall
from localcloud.api.store import StoredResource
from localcloud.api.targets import Requirement

_ADMINISTRATORS = fixed_ocid("group", tenancy.ADMINISTRATORS)
# Every user may do this to itself, whatever the policies say.
_ONES_OWN = frozenset({"GetUser", "ListApiKeys", "UploadApiKey", "DeleteApiKey"})
log = logging.getLogger("localcloud")


def authorize(call: ApiCall) -> None:
    """Raises OCI's refusal unless the policies in force allow the call. The log says what was missing."""
    if _is_administrator(call) or _is_ones_own(call):
        return
    try:
        required = list(targets.requirements(call))
    except StatementError:
        log.warning("refused %s: the catalog has no permissions for this operation", call.operation.name)
        raise not_found() from None
    for group in _by_target(required):
        _require(call, group)


def may_see(call: ApiCall, resource: StoredResource) -> bool:
    """Whether the caller may see this item, in a list that spans several compartments."""
    if _is_administrator(call):
        return True
    if resource.kind == "work-request":
        kept = resource.body.get(targets.INHERITED, [])
        return bool(kept) and all(
            call.cloud.access.would_allow(call.principal, call.operation.name, permissions, Target(place, variables))
            for permissions, place, variables in kept
        )
    return may_see_in(call, resource.compartment)


def may_see_in(call: ApiCall, compartment: str) -> bool:
    """Whether the caller may do what this call does in another compartment too."""
    if _is_administrator(call):
        return True
    own = next(targets.requirements(call))
    target = Target(compartment, own.target.variables if own.target else {})
    return call.cloud.access.would_allow(call.principal, call.operation.name, own.permissions, target)


def names_of(call: ApiCall, resources: Sequence[StoredResource]) -> str:
    """The resources that block a call: by name if its caller may see them, the rest as a number."""
    seen = [one for one in resources if may_see(call, one)]
    named = [f"{one.kind} {one.name} ({one.id})" for one in seen[:3]]
    hidden = len(resources) - len(seen)
    return ", ".join([*named, *([f"{hidden} in other compartments"] if hidden else [])])


def _is_administrator(call: ApiCall) -> bool:
    return any(group.ocid == _ADMINISTRATORS for group in call.cloud.access.subject(call.principal).groups)


def _is_ones_own(call: ApiCall) -> bool:
    return call.operation.name in _ONES_OWN and call.params["userId"] == call.principal.id


def _by_target(required: list[Requirement]) -> list[list[Requirement]]:
    """Groups the requirements by target, so that each target is judged once. One without a target stays alone."""
    groups: dict[object, list[Requirement]] = {}
    for number, one in enumerate(required):
        key = (one.target.compartment, *sorted(one.target.variables.items())) if one.target else number
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def _require(call: ApiCall, group: list[Requirement]) -> None:
    target = group[0].target
    if target is None:
        log.warning("refused %s: a resource that it names does not exist", call.operation.name)
        raise group[0].refusal
    permissions = frozenset().union(*(one.permissions for one in group))
    missing = call.cloud.access.missing(call.principal, call.operation.name, tuple(sorted(permissions)), target)
    if missing:
        raise next(one.refusal for one in group if one.permissions & missing)


def delay_effect(call: ApiCall, body: Json, before: Any) -> Json:
    """The body of a policy or dynamic group. An `access` fault makes it take effect later."""
    seconds = call.cloud.faults.seconds("access", call.operation.name)
    return {**body, LATER: (clock.now() + seconds, before) if seconds else (0.0, None)}
