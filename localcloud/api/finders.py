# SPDX-License-Identifier: Apache-2.0
"""What a value in a request refers to: a place in the tenancy, and the variables that statements may narrow it by.

Most values are OCIDs of a kind of resource. A row of FINDERS reads the kinds that are told otherwise: by name, by an
address, or by several values at once. What is not found refers to nothing that anybody may use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from localcloud.api.log_query import scopes_of
from localcloud.api.operations import ApiCall
from localcloud.api.store import StoredResource
from localcloud.api.tenancy import TENANCY


@dataclass(frozen=True)
class ReferenceTarget:
    """Something that a call refers to. `resource` is absent where a compartment itself is named."""

    compartment: str
    variables: Mapping[str, str] = field(default_factory=dict)
    resource: StoredResource | None = None

    @property
    def kind(self) -> str:
        return self.resource.kind if self.resource else ""


Finder = Callable[[ApiCall, Any], list[ReferenceTarget]]
_VARIABLES: Mapping[str, Mapping[str, Callable[[StoredResource], str]]] = {
    "bucket": {"target.bucket.name": lambda found: found.name},
    "container-image": {"target.repo.name": lambda found: str(found.body["repositoryName"])},
    "container-repository": {"target.repo.name": lambda found: found.name},
    "group": {"target.group.id": lambda found: found.id, "target.group.name": lambda found: found.name},
    "secret": {"target.secret.id": lambda found: found.id, "target.secret.name": lambda found: found.name},
    "user": {"target.user.id": lambda found: found.id, "target.user.name": lambda found: found.name},
}


def find(call: ApiCall, kinds: str, value: Any) -> list[ReferenceTarget]:
    """What a value refers to, of one of these kinds and alive; nothing where there is no such thing."""
    if finder := FINDERS.get(kinds):
        return finder(call, value)
    resource = call.store.get(value) if isinstance(value, str) else None
    return [of_resource(call, resource)] if resource and resource.live and resource.kind in kinds.split() else []


def find_even_deleted(call: ApiCall, kinds: str, value: str) -> list[ReferenceTarget]:
    """What a path names, or a resource has: of what was deleted, where it lay."""
    if kinds == "bucket":
        return FINDERS[kinds](call, value)
    resource = call.store.get(value)
    return [of_resource(call, resource)] if resource and resource.kind in kinds.split() else []


def of_resource(call: ApiCall, resource: StoredResource) -> ReferenceTarget:
    variables = {name: read(resource) for name, read in _VARIABLES.get(resource.kind, {}).items()}
    if resource.kind == "log":  # a log lies where its group does
        group = call.store.get(resource.parent)
        return ReferenceTarget(group.compartment if group else resource.compartment, variables, resource)
    if resource.kind == "user-group-membership":
        return together([*find(call, "user", resource.name), *find(call, "group", resource.parent)])
    return ReferenceTarget(resource.compartment, variables, resource)


def together(found: list[ReferenceTarget]) -> ReferenceTarget:
    """Several things that lie in the tenancy as one target, with the variables of all."""
    return ReferenceTarget(TENANCY, {name: value for one in found for name, value in one.variables.items()})


def _compartment(call: ApiCall, value: Any) -> list[ReferenceTarget]:
    return [ReferenceTarget(value)] if isinstance(value, str) else []


def _bucket(call: ApiCall, name: Any) -> list[ReferenceTarget]:
    buckets = call.store.live("bucket", name=name) if isinstance(name, str) else []
    return [of_resource(call, bucket) for bucket in buckets]


def _copy_destination(call: ApiCall, name: Any) -> list[ReferenceTarget]:
    target = _text(call.json(), "destinationObjectName")
    return [
        ReferenceTarget(bucket.compartment, {**bucket.variables, "target.object.name": target}, bucket.resource)
        for bucket in _bucket(call, name)
    ]


def _posted_metric(call: ApiCall, entry: Any) -> list[ReferenceTarget]:
    return [ReferenceTarget(_text(entry, "compartmentId"), {"target.metrics.namespace": _text(entry, "namespace")})]


def _searched_scope(call: ApiCall, query: Any) -> list[ReferenceTarget]:
    """Every compartment that a log search names: the first part of each of its scopes."""
    return [ReferenceTarget(place) for place in sorted({scope[0] for scope in scopes_of(str(query))})]


def _pushed_image(call: ApiCall, address: Any) -> list[ReferenceTarget]:
    """The repository that an image is pushed into; one that is not there yet would be made in the tenancy."""
    name = pushed_repository(address)
    found = call.store.live("container-repository", name=name)
    return [of_resource(call, found[0])] if found else [ReferenceTarget(TENANCY, {"target.repo.name": name})]


def pushed_repository(address: Any) -> str:
    path = str(address).partition("@")[0].split("/", 2)[-1]
    return path.rpartition(":")[0] or path


def _named_secret(call: ApiCall, name: Any) -> list[ReferenceTarget]:
    """The secret that is asked for by its name and its vault."""
    found = call.store.live("secret", name=name, parent=call.request.query.get("vaultId", ""))
    return [of_resource(call, secret) for secret in found]


def _text(value: Any, name: str) -> str:
    return str(value.get(name)) if isinstance(value, dict) else ""


FINDERS: Mapping[str, Finder] = {
    "bucket": _bucket,
    "compartment": _compartment,
    "copy-destination": _copy_destination,
    "named-secret": _named_secret,
    "posted-metric": _posted_metric,
    "pushed-image": _pushed_image,
    "searched-scope": _searched_scope,
}


def values_at(value: Any, path: str) -> Iterator[Any]:
    """What stands at a path such as `rules[].source`; nothing where something else is in the way."""
    name, _, rest = path.partition(".")
    item = value.get(name.removesuffix("[]")) if isinstance(value, Mapping) else None
    items = item if name.endswith("[]") else [item]
    for each in items if isinstance(items, list) else []:
        if rest:
            yield from values_at(each, rest)
        elif each:
            yield each
