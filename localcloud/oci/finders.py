# SPDX-License-Identifier: Apache-2.0
"""Finds the resource that a value in a request refers to: its compartment, and its variables for policy statements.

Most values are OCIDs. FINDERS has a row for each kind that is identified in another way: by name, by an address, or by
several values together. A value that refers to nothing gives an empty list. Then nobody has permissions on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from localcloud.oci.image_address import parse_address
from localcloud.oci.log_query import scopes_of
from localcloud.oci.operations import ApiCall
from localcloud.oci.store import StoredResource
from localcloud.oci.tenancy import TENANCY


@dataclass(frozen=True)
class ReferenceTarget:
    """Something that a call refers to. `resource` None: the compartment itself."""

    compartment: str
    variables: Mapping[str, str] = field(default_factory=dict)
    resource: StoredResource | None = None

    @property
    def kind(self) -> str:
        return self.resource.kind if self.resource else ""


Finder = Callable[[ApiCall, Any], list[ReferenceTarget]]
_VARIABLES: Mapping[str, Mapping[str, Callable[[StoredResource], str]]] = {
    "bucket": {"target.bucket.name": lambda bucket: bucket.name},
    "container-image": {"target.repo.name": lambda image: str(image.body["repositoryName"])},
    "container-repository": {"target.repo.name": lambda repository: repository.name},
    "group": {"target.group.id": lambda group: group.id, "target.group.name": lambda group: group.name},
    "secret": {"target.secret.id": lambda secret: secret.id, "target.secret.name": lambda secret: secret.name},
    "user": {"target.user.id": lambda user: user.id, "target.user.name": lambda user: user.name},
}


def find(call: ApiCall, kinds: str, value: Any) -> list[ReferenceTarget]:
    """The target of a value: an existing resource of one of these kinds, or none."""
    if finder := FINDERS.get(kinds):
        return finder(call, value)
    resource = call.store.get(value) if isinstance(value, str) else None
    return [target_of(call, resource)] if resource and resource.live and resource.kind in kinds.split() else []


def find_even_deleted(call: ApiCall, kinds: str, value: str) -> list[ReferenceTarget]:
    """The target of a value in a path or a stored resource. A deleted resource counts, in its last compartment."""
    if kinds == "bucket":
        return FINDERS[kinds](call, value)
    resource = call.store.get(value)
    return [target_of(call, resource)] if resource and resource.kind in kinds.split() else []


def target_of(call: ApiCall, resource: StoredResource) -> ReferenceTarget:
    variables = {name: read(resource) for name, read in _VARIABLES.get(resource.kind, {}).items()}
    if resource.kind == "log":  # for policies, a log belongs to the compartment of its group
        group = call.store.get(resource.parent)
        return ReferenceTarget(group.compartment if group else resource.compartment, variables, resource)
    if resource.kind == "user-group-membership":
        return merge_targets([*find(call, "user", resource.name), *find(call, "group", resource.parent)])
    return ReferenceTarget(resource.compartment, variables, resource)


def merge_targets(targets: list[ReferenceTarget]) -> ReferenceTarget:
    """Joins several targets into one in the tenancy, with the variables of all."""
    return ReferenceTarget(TENANCY, {name: value for target in targets for name, value in target.variables.items()})


def _compartment(call: ApiCall, value: Any) -> list[ReferenceTarget]:
    return [ReferenceTarget(value)] if isinstance(value, str) else []


def _bucket(call: ApiCall, name: Any) -> list[ReferenceTarget]:
    buckets = call.store.live("bucket", name=name) if isinstance(name, str) else []
    return [target_of(call, bucket) for bucket in buckets]


def _copy_destination(call: ApiCall, name: Any) -> list[ReferenceTarget]:
    target = _text(call.json(), "destinationObjectName")
    return [
        ReferenceTarget(bucket.compartment, {**bucket.variables, "target.object.name": target}, bucket.resource)
        for bucket in _bucket(call, name)
    ]


def _posted_metric(call: ApiCall, entry: Any) -> list[ReferenceTarget]:
    return [ReferenceTarget(_text(entry, "compartmentId"), {"target.metrics.namespace": _text(entry, "namespace")})]


def _searched_scope(call: ApiCall, query: Any) -> list[ReferenceTarget]:
    """The compartments that a log search names: the first part of each scope."""
    return [ReferenceTarget(place) for place in sorted({scope[0] for scope in scopes_of(str(query))})]


def _pushed_image(call: ApiCall, address: Any) -> list[ReferenceTarget]:
    """The repository that receives a pushed image. A missing one counts as the tenancy's: a push creates it there."""
    name = pushed_repository(address)
    repositories = call.store.live("container-repository", name=name)
    return (
        [target_of(call, repositories[0])] if repositories else [ReferenceTarget(TENANCY, {"target.repo.name": name})]
    )


def pushed_repository(address: Any) -> str:
    """The repository in an address; empty for a text that is not an address, to which nobody can push."""
    parts = parse_address(address)
    return parts.repository if parts else ""


def _named_secret(call: ApiCall, name: Any) -> list[ReferenceTarget]:
    """The secret that a request names by its name and its vault."""
    secrets = call.store.live("secret", name=name, parent=call.query.get("vaultId", ""))
    return [target_of(call, secret) for secret in secrets]


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
    """The values at a path such as `rules[].source`; none if the value does not have that structure."""
    name, _, rest = path.partition(".")
    item = value.get(name.removesuffix("[]")) if isinstance(value, Mapping) else None
    items = item if name.endswith("[]") else [item]
    for each in items if isinstance(items, list) else []:
        if rest:
            yield from values_at(each, rest)
        elif each:
            yield each
