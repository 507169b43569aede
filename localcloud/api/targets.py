# SPDX-License-Identifier: Apache-2.0
"""What a call is about, as policies see it: which permissions it needs, on what, and how it is refused without."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from iam.judge import Target
from iam.permissions import Operation as Needs
from iam.permissions import operation as needs_named
from localcloud.api import tenancy
from localcloud.api.circumstances import CIRCUMSTANCES
from localcloud.api.errors import ApiError, not_found
from localcloud.api.finders import ReferenceTarget
from localcloud.api.operations import ApiCall
from localcloud.api.references import Reference, References

# Calls of our own that stand for one the catalog names, and one that shares its name with another service's.
STANDS_FOR = {"PushContainerImage": "docker push"}
_OF_SERVICES = {("limits", "ListServices"): "limits: ListServices"}
# Variables that a path parameter or a field of an operation's body is.
_OF_PARAMETERS = {"bucketName": "target.bucket.name", "objectName": "target.object.name"}
_OF_BODIES: Mapping[str, tuple[str, str]] = {
    "CreateBucket": ("name", "target.bucket.name"),
    "ListMetrics": ("namespace", "target.metrics.namespace"),
    "SummarizeMetricsData": ("namespace", "target.metrics.namespace"),
}
# What a work request keeps of the call that made it, beside what OCI's model has: so never shown.
INHERITED = "takes"


@dataclass(frozen=True)
class Requirement:
    """Permissions, and what they are needed for: nothing where a reference leads nowhere, and nobody has them."""

    permissions: frozenset[str]
    target: Target | None
    refusal: ApiError


def needs_of(call: ApiCall) -> Needs:
    """What the catalog says of the call; StatementError where it says nothing."""
    return needs_named(_name(call))


def requirements(call: ApiCall) -> Iterator[Requirement]:
    """Everything that the call needs, its own first."""
    needs = needs_of(call)
    references = References(call, needs)
    always = (needs.permissions - references.claimed) | _circumstances(call, needs)
    own = list(_own(call, references.own))
    if not own and not always and references.names_in_path:
        yield Requirement(always, None, not_found())  # nothing to judge: it is told apart from nothing else
    for target in own or [Target(tenancy.TENANCY, _variables(call))]:
        yield Requirement(always, target, not_found())
    for found in references.own:
        yield from _inherited(found)
    for placed in (*references.placed(), *references.moved()):
        yield from _required(placed.permissions, placed.reference)


def inheritance(call: ApiCall) -> list[list[object]]:
    """What a call needs, as its work request keeps it."""
    return [
        [sorted(one.permissions), one.target.compartment, dict(one.target.variables)]
        for one in requirements(call)
        if one.target
    ]


def _name(call: ApiCall) -> str:
    """What the catalog calls it: to delete a version for good takes more than to delete an object."""
    if call.operation.name == "DeleteObject" and call.request.query.get("versionId"):
        return "DeleteObjectVersion"
    name = call.operation.name
    return _OF_SERVICES.get((call.operation.service, name)) or STANDS_FOR.get(name, name)


def _own(call: ApiCall, found: list[ReferenceTarget]) -> Iterator[Target]:
    variables = _variables(call)
    return (Target(one.compartment, {**variables, **one.variables}) for one in found)


def _required(permissions: frozenset[str], reference: Reference) -> Iterator[Requirement]:
    for found in reference.found:
        yield Requirement(permissions, Target(found.compartment, found.variables), reference.refusal)
    if not reference.found:
        yield Requirement(permissions, None, reference.refusal)


def _inherited(found: ReferenceTarget) -> Iterator[Requirement]:
    """A work request takes what the call took that made it."""
    if found.resource is None or found.resource.kind != "work-request":
        return
    kept = found.resource.body.get(INHERITED)
    for permissions, compartment, variables in kept or ():
        yield Requirement(frozenset(permissions), Target(compartment, variables), not_found())
    if kept is None:
        yield Requirement(frozenset(), None, not_found())


def _circumstances(call: ApiCall, needs: Needs) -> frozenset[str]:
    """Permissions that depend on what is there already."""
    applying = (
        permissions
        for circumstance, permissions in needs.conditional.items()
        if (applies := CIRCUMSTANCES.get((call.operation.name, circumstance))) and applies(call)
    )
    return frozenset().union(*applying)


def _variables(call: ApiCall) -> dict[str, str]:
    known = {variable: call.params.get(parameter, "") for parameter, variable in _OF_PARAMETERS.items()}
    if call.operation.name in _OF_BODIES:
        field, variable = _OF_BODIES[call.operation.name]
        body = call.json() if call.request.body else None
        known[variable] = str(body.get(field) or "") if isinstance(body, dict) else ""
    return {name: value for name, value in known.items() if value}
