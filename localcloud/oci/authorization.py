# SPDX-License-Identifier: Apache-2.0
"""Authorizes a call: collects the permissions that it needs, and refuses it if its caller lacks one.

localcloud/oci/access_decisions.py decides who has which permissions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.oci.iam.judge import Target
from components.oci.iam.permissions import Operation as Needs
from components.oci.iam.permissions import find_operation as needs_named
from components.oci.iam.statement import StatementError
from localcloud.oci import tenancy
from localcloud.oci.access_decisions import LATER
from localcloud.oci.container_images import pushed_repository
from localcloud.oci.oci_errors import not_found
from localcloud.oci.ocids import fixed_ocid
from localcloud.oci.operations import ApiCall
from localcloud.oci.references import References
from localcloud.oci.tenancy_store import StoredResource
from localcloud.server import http
from localcloud.server.api_errors import ApiError
from localcloud.server.http import Json

Condition = Callable[[ApiCall], bool]
# The catalog's names for an operation of our own, and for an operation whose name two services have.
STANDS_FOR = {"PushContainerImage": "docker push"}
_OF_SERVICES = {("limits", "ListServices"): "limits: ListServices"}
# Policy variables that come from path parameters and from body fields.
_OF_PARAMETERS = {"bucketName": "target.bucket.name", "objectName": "target.object.name"}
_OF_BODIES: Mapping[str, tuple[str, str]] = {
    "CreateBucket": ("name", "target.bucket.name"),
    "ListMetrics": ("namespace", "target.metrics.namespace"),
    "SummarizeMetricsData": ("namespace", "target.metrics.namespace"),
}
# The field of a work request with the permissions that its call needed. OCI's model has no such field, so clients never
# see it.
INHERITED = "takes"
_ADMINISTRATORS = fixed_ocid("group", tenancy.ADMINISTRATORS)
# Operations that every user may call on itself, whatever the policies say.
_SELF_SERVICE = frozenset({
    "GetUser", "ListApiKeys", "UploadApiKey", "DeleteApiKey", "ListAuthTokens", "CreateAuthToken", "DeleteAuthToken",
})  # fmt: skip
log = logging.getLogger("localcloud")


def _object_exists(call: ApiCall) -> bool:
    buckets = call.store.live("bucket", name=call.params["bucketName"])
    row = call.store.connection.execute(
        "SELECT 1 FROM objects WHERE bucket = ? AND name = ?",
        (buckets[0].id if buckets else "", call.params["objectName"]),
    ).fetchone()
    return bool(row)


def _repository_is_new(call: ApiCall) -> bool:
    body = call.json()
    name = pushed_repository(body.get("image") if isinstance(body, dict) else "")
    return not call.store.live("container-repository", name=name)


# The conditions of permissions that a call needs only in some cases, by operation and case.
CONDITIONS: Mapping[tuple[str, str], Condition] = {
    ("PutObject", "new object"): lambda call: not _object_exists(call),
    ("PutObject", "existing object"): _object_exists,
    ("PushContainerImage", "new repository"): _repository_is_new,
}


@dataclass(frozen=True)
class Requirement:
    """Permissions, and the target on which they are needed. `target` None: the reference is dangling, and so nobody has
    them."""

    permissions: frozenset[str]
    target: Target | None
    refusal: ApiError


def read_needs(call: ApiCall) -> Needs:
    """The call's row in the catalog; StatementError if there is none."""
    name = call.operation.name
    if name == "DeleteObject" and call.query.get("versionId"):
        return needs_named("DeleteObjectVersion")  # it needs other permissions than deleting an object
    return needs_named(_OF_SERVICES.get((call.operation.service, name)) or STANDS_FOR.get(name, name))


def required_permissions(call: ApiCall) -> Iterator[Requirement]:
    """All permissions that the call needs, first those on its own target."""
    needs = read_needs(call)
    references = References(call, needs)
    # Further permissions in this case, for example because the object exists already.
    applying = (
        permissions
        for case, permissions in needs.conditional.items()
        if (applies := CONDITIONS.get((call.operation.name, case))) and applies(call)
    )
    always = (needs.permissions - references.claimed) | frozenset().union(*applying)
    variables = {variable: call.params.get(parameter, "") for parameter, variable in _OF_PARAMETERS.items()}
    if call.operation.name in _OF_BODIES:
        field, variable = _OF_BODIES[call.operation.name]
        body = call.json() if call.input.body else None
        variables[variable] = str(body.get(field) or "") if isinstance(body, dict) else ""
    variables = {name: value for name, value in variables.items() if value}
    own = [Target(target.compartment, {**variables, **target.variables}) for target in references.own]
    if not own and not always and references.names_in_path:
        yield Requirement(always, None, not_found())  # it has no target: refused like a missing resource
    for target in own or [Target(tenancy.TENANCY, variables)]:
        yield Requirement(always, target, not_found())
    # Reading a work request needs the permissions of the call that made it.
    for request in (target.resource for target in references.own):
        if request is None or request.kind != "work-request":
            continue
        inherited = request.body.get(INHERITED)
        for permissions, compartment, made_with in inherited or ():
            yield Requirement(frozenset(permissions), Target(compartment, made_with), not_found())
        if inherited is None:
            yield Requirement(frozenset(), None, not_found())
    for placed in (*references.placed(), *references.moved(), *references.tagged()):
        for named in placed.reference.targets:
            target = Target(named.compartment, named.variables)
            yield Requirement(placed.permissions, target, placed.reference.refusal)
        if not placed.reference.targets:
            yield Requirement(placed.permissions, None, placed.reference.refusal)


def inherited_permissions(call: ApiCall) -> list[list[object]]:
    """The permissions that a call needs, in the form that its work request stores."""
    return [
        [sorted(one.permissions), one.target.compartment, dict(one.target.variables)]
        for one in required_permissions(call)
        if one.target
    ]


def authorize_call(call: ApiCall) -> None:
    """Raises OCI's refusal unless the policies in force allow the call. The log says what was missing."""
    if call.operation.name in _SELF_SERVICE and call.params["userId"] == call.principal.id:
        return
    needs_no_policy = _is_administrators_call(call)
    if needs_no_policy and b"definedTags" not in call.input.body:
        return
    try:
        required = list(required_permissions(call))
    except StatementError:
        log.warning("refused %s: the catalog has no permissions for this operation", call.operation.name)
        raise not_found() from None
    if needs_no_policy:
        for requirement in required:  # administrators cannot set a defined tag either that nobody defined
            if requirement.target is None and "TAG_NAMESPACE_USE" in requirement.permissions:
                raise requirement.refusal
        return
    # Each target is evaluated once. A requirement without a target stays alone.
    groups: dict[object, list[Requirement]] = {}
    for number, requirement in enumerate(required):
        target = requirement.target
        key = (target.compartment, *sorted(target.variables.items())) if target else number
        groups.setdefault(key, []).append(requirement)
    for group in groups.values():
        target = group[0].target
        if target is None:
            log.warning("refused %s: a resource that it names does not exist", call.operation.name)
            raise group[0].refusal
        permissions = frozenset().union(*(requirement.permissions for requirement in group))
        missing = call.cloud.access.missing(call.principal, call.operation.name, tuple(sorted(permissions)), target)
        if missing:
            raise next(requirement.refusal for requirement in group if requirement.permissions & missing)


def may_see(call: ApiCall, resource: StoredResource) -> bool:
    """Whether the caller may see this item, in a list that spans several compartments."""
    if _is_administrators_call(call):
        return True
    if resource.kind == "work-request":
        needed = resource.body.get(INHERITED, [])
        return bool(needed) and all(
            call.cloud.access.would_allow(call.principal, call.operation.name, permissions, Target(place, variables))
            for permissions, place, variables in needed
        )
    return may_see_in(call, resource.compartment)


def may_see_in(call: ApiCall, compartment: str) -> bool:
    """Whether the caller may make the same call in another compartment."""
    if _is_administrators_call(call):
        return True
    own = next(required_permissions(call))
    target = Target(compartment, own.target.variables if own.target else {})
    return call.cloud.access.would_allow(call.principal, call.operation.name, own.permissions, target)


def may_list_in(call: ApiCall, operation: str, compartment: str) -> bool:
    """Whether the caller may make another call, which lists resources, in a compartment."""
    if _is_administrators_call(call):
        return True
    permissions = needs_named(operation).permissions
    return call.cloud.access.would_allow(call.principal, operation, permissions, Target(compartment))


def names_of(call: ApiCall, resources: Sequence[StoredResource]) -> str:
    """The resources that block a call: by name if its caller may see them, the rest as a number."""
    seen = [one for one in resources if may_see(call, one)]
    named = [f"{one.kind} {one.name} ({one.id})" for one in seen[:3]]
    hidden = len(resources) - len(seen)
    return ", ".join([*named, *([f"{hidden} in other compartments"] if hidden else [])])


def _is_administrators_call(call: ApiCall) -> bool:
    return any(group.ocid == _ADMINISTRATORS for group in call.cloud.access.subject(call.principal).groups)


def delay_effect(call: ApiCall, body: Json, before: Any) -> Json:
    """The body of a policy or dynamic group. An `access` fault makes it take effect later."""
    seconds = call.cloud.faults.seconds("access", call.operation.name)
    return {**body, LATER: (http.current_moment() + seconds, before) if seconds else (0.0, None)}
