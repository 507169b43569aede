# SPDX-License-Identifier: Apache-2.0
"""What a call needs, as policies see it: permissions, their targets, and OCI's refusal where they are missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from components.oci.iam.judge import Target
from components.oci.iam.permissions import Operation as Needs
from components.oci.iam.permissions import operation as needs_named
from localcloud.api import tenancy
from localcloud.api.circumstances import CIRCUMSTANCES
from localcloud.api.errors import ApiError, not_found
from localcloud.api.finders import ReferenceTarget
from localcloud.api.operations import ApiCall
from localcloud.api.references import Reference, References

# The catalog's names for a call of our own, and for a call whose name another service has too.
STANDS_FOR = {"PushContainerImage": "docker push"}
_OF_SERVICES = {("limits", "ListServices"): "limits: ListServices"}
# The policy variables that path parameters and body fields give.
_OF_PARAMETERS = {"bucketName": "target.bucket.name", "objectName": "target.object.name"}
_OF_BODIES: Mapping[str, tuple[str, str]] = {
    "CreateBucket": ("name", "target.bucket.name"),
    "ListMetrics": ("namespace", "target.metrics.namespace"),
    "SummarizeMetricsData": ("namespace", "target.metrics.namespace"),
}
# A work request keeps here what its call needed. OCI's model has no such field, so clients never see it.
INHERITED = "takes"


@dataclass(frozen=True)
class Requirement:
    """Permissions, and the target they are needed on. No target: the reference leads nowhere, so nobody has them."""

    permissions: frozenset[str]
    target: Target | None
    refusal: ApiError


def needs_of(call: ApiCall) -> Needs:
    """The call's row in the catalog; StatementError if there is none."""
    return needs_named(_name(call))


def requirements(call: ApiCall) -> Iterator[Requirement]:
    """Everything that the call needs, its own first."""
    needs = needs_of(call)
    references = References(call, needs)
    always = (needs.permissions - references.claimed) | _circumstances(call, needs)
    own = list(_own(call, references.own))
    if not own and not always and references.names_in_path:
        yield Requirement(always, None, not_found())  # nothing to judge: answer as for any missing resource
    for judged in own or [Target(tenancy.TENANCY, _variables(call))]:
        yield Requirement(always, judged, not_found())
    for target in references.own:
        yield from _inherited(target)
    for placed in (*references.placed(), *references.moved()):
        yield from _required(placed.permissions, placed.reference)


def inheritance(call: ApiCall) -> list[list[object]]:
    """What a call needs, in the form that its work request keeps."""
    return [
        [sorted(one.permissions), one.target.compartment, dict(one.target.variables)]
        for one in requirements(call)
        if one.target
    ]


def _name(call: ApiCall) -> str:
    """The catalog's name of the call. Deleting a version needs more than deleting an object, so it has its own name."""
    if call.operation.name == "DeleteObject" and call.query.get("versionId"):
        return "DeleteObjectVersion"
    name = call.operation.name
    return _OF_SERVICES.get((call.operation.service, name)) or STANDS_FOR.get(name, name)


def _own(call: ApiCall, targets: list[ReferenceTarget]) -> Iterator[Target]:
    variables = _variables(call)
    return (Target(target.compartment, {**variables, **target.variables}) for target in targets)


def _required(permissions: frozenset[str], reference: Reference) -> Iterator[Requirement]:
    for target in reference.targets:
        yield Requirement(permissions, Target(target.compartment, target.variables), reference.refusal)
    if not reference.targets:
        yield Requirement(permissions, None, reference.refusal)


def _inherited(target: ReferenceTarget) -> Iterator[Requirement]:
    """Reading a work request needs what the call that made it needed."""
    if target.resource is None or target.resource.kind != "work-request":
        return
    kept = target.resource.body.get(INHERITED)
    for permissions, compartment, variables in kept or ():
        yield Requirement(frozenset(permissions), Target(compartment, variables), not_found())
    if kept is None:
        yield Requirement(frozenset(), None, not_found())


def _circumstances(call: ApiCall, needs: Needs) -> frozenset[str]:
    """The permissions that depend on what exists already."""
    applying = (
        permissions
        for circumstance, permissions in needs.conditional.items()
        if (applies := CIRCUMSTANCES.get((call.operation.name, circumstance))) and applies(call)
    )
    return frozenset().union(*applying)


def _variables(call: ApiCall) -> dict[str, str]:
    variables = {variable: call.params.get(parameter, "") for parameter, variable in _OF_PARAMETERS.items()}
    if call.operation.name in _OF_BODIES:
        field, variable = _OF_BODIES[call.operation.name]
        body = call.json() if call.said.body else None
        variables[variable] = str(body.get(field) or "") if isinstance(body, dict) else ""
    return {name: value for name, value in variables.items() if value}
