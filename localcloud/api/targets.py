# SPDX-License-Identifier: Apache-2.0
"""What a call is about, as policies see it: a compartment, and the variables of their conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from iam.judge import Target
from iam.permissions import Operation as Needs
from localcloud.api import models, tenancy
from localcloud.api.circumstances import ABOUT, CIRCUMSTANCES, Elsewhere
from localcloud.api.operations import Call
from localcloud.api.store import Resource

# Variables that the resource of a path parameter gives.
_OF_RESOURCES: Mapping[str, Mapping[str, Callable[[Resource], str]]] = {
    "repositoryId": {"target.repo.name": lambda found: found.name},
    "secretId": {"target.secret.id": lambda found: found.id, "target.secret.name": lambda found: found.name},
    "userId": {"target.user.id": lambda found: found.id, "target.user.name": lambda found: found.name},
    "groupId": {"target.group.id": lambda found: found.id, "target.group.name": lambda found: found.name},
}
# Variables that a path parameter or a field of an operation's body is.
_OF_PARAMETERS = {"bucketName": "target.bucket.name", "objectName": "target.object.name"}
_OF_BODIES: Mapping[str, tuple[str, str]] = {
    "CreateBucket": ("name", "target.bucket.name"),
    "ListMetrics": ("namespace", "target.metrics.namespace"),
    "SummarizeMetricsData": ("namespace", "target.metrics.namespace"),
}


def of(call: Call) -> list[Target]:
    """Everything that the call's own permissions are needed for."""
    about = ABOUT.get(call.operation.name)
    return [_place(call, place) for place in (about(call) if about else ())] or [_place(call, "")]


def further(call: Call, needs: Needs) -> Iterator[tuple[frozenset[str], Target]]:
    """Permissions that depend on what is asked for, each with what they are about."""
    for circumstance, permissions in needs.conditional.items():
        applies = CIRCUMSTANCES.get((call.operation.name, circumstance))
        for place in applies(call) if applies else ():
            yield permissions, _place(call, place)


def _place(call: Call, place: str | Elsewhere) -> Target:
    if isinstance(place, Elsewhere):
        return Target(place.compartment, place.variables)
    return Target(place or _compartment(call), _variables(call))


def _compartment(call: Call) -> str:
    """Where the thing asked for lies: what the path names, else the compartment that the request names."""
    for name, value in call.params.items():
        named = call.store.live("bucket", name=value) if name == "bucketName" else [call.store.get(value)]
        if named and named[0]:
            return named[0].compartment
    return _named_compartment(call) or tenancy.TENANCY


def _named_compartment(call: Call) -> str:
    """From where the handler reads it: what stands elsewhere in the request is not carried out."""
    operation, query = call.operation, call.request.query
    if operation.details and "compartmentId" in models.fields(operation.service, operation.details):
        named = _field(call, "compartmentId")
        return named if isinstance(named, str) else ""
    if query.get("compartmentId"):
        return query["compartmentId"]
    for name in ("subnetId", "vnicId"):  # lists that are of these instead
        if found := call.store.get(query.get(name, "")):
            return found.compartment
    return ""


def _field(call: Call, name: str) -> object:
    body = call.json() if call.request.body else None
    return body.get(name) if isinstance(body, dict) else None


def _variables(call: Call) -> dict[str, str]:
    known = {variable: call.params.get(parameter, "") for parameter, variable in _OF_PARAMETERS.items()}
    if call.operation.name in _OF_BODIES:
        field, variable = _OF_BODIES[call.operation.name]
        known[variable] = str(_field(call, field) or "")
    for parameter, variables in _OF_RESOURCES.items():
        if found := call.store.get(call.params.get(parameter, "")):
            known |= {variable: read(found) for variable, read in variables.items()}
    return {name: value for name, value in known.items() if value}
