# SPDX-License-Identifier: Apache-2.0
"""Finds the resources that a request refers to. `catalog/references.toml` says where in the request each one is.

Most values are OCIDs. FINDERS has a row for each kind that is identified in another way: by name, by an address, or by
several values together. A value that refers to nothing gives an empty list. Then nobody has permissions on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from catalog.tables import table
from components.oci.iam.permissions import Operation as Needs
from components.oci.iam.permissions import type_of
from localcloud.oci import models
from localcloud.oci.container_images import pushed_repository
from localcloud.oci.log_query import query_scopes
from localcloud.oci.oci_errors import not_found, related_not_found
from localcloud.oci.operations import ApiCall
from localcloud.oci.tenancy import TENANCY
from localcloud.oci.tenancy_store import StoredResource
from localcloud.server.api_errors import ApiError
from localcloud.server.http import values_at

_OWN = "own"
_DESTINATION = "body.compartmentId"  # the destination of a move
# Kinds that OCI refuses like a resource in the path, even if they are elsewhere in the request.
_REFUSED_AS_IN_PATH = frozenset({"compartment", "copy-destination"})
_USE_TAGS = frozenset({"TAG_NAMESPACE_USE"})
_PERMISSION = re.compile(r"[A-Z][A-Z0-9_]+")


@dataclass(frozen=True)
class Reference:
    """A reference: its name, its place in the request, its value, and its targets."""

    name: str
    source: str
    value: Any
    targets: tuple[ReferenceTarget, ...]

    @property
    def refusal(self) -> ApiError:
        """OCI's refusal. It is the same for a missing and for a forbidden resource, so it reveals nothing."""
        if self.source != "body" or kinds_of(self.name) in _REFUSED_AS_IN_PATH:
            return not_found()
        return related_not_found(f"{self.name} {self.value}")


@dataclass(frozen=True)
class PlacedPermissions:
    """Permissions, and the reference to the resource that they are needed on."""

    permissions: frozenset[str]
    reference: Reference


def kinds_of(name: str) -> str:
    """The kinds of resource that a field of this name refers to; empty for a field that refers to none."""
    return str(table("references")["kinds"].get(name, "")).removesuffix("?")


def reference_rows(operation: str) -> Mapping[str, str]:
    """The rows of one operation: where a reference is, and which permissions it needs."""
    rows: Mapping[str, str] = table("references")["operations"].get(operation, {})
    return rows


class References:
    """All references of one call."""

    def __init__(self, call: ApiCall, needs: Needs) -> None:
        self._call = call
        self._needs = needs
        self._rows = reference_rows(call.operation.name)

    @cached_property
    def own(self) -> list[ReferenceTarget]:
        """The targets of the call's own permissions; empty means the tenancy."""
        if _OWN in self._rows:
            parts = [self._references_at(part) for part in self._rows[_OWN].split(" + ")]
            targets = [target for part in parts for reference in part for target in reference.targets]
            return [merge_targets(targets)] if len(parts) > 1 else targets
        if self._path_target:
            return [self._path_target]
        place = "body" if self._has_compartment else "query"
        if self._path_value:
            return []
        return [target for each in self._references_at(f"{place}.compartmentId") for target in each.targets]

    @property
    def names_in_path(self) -> bool:
        """Whether the path names a resource, existing or not."""
        return self._path_value is not None

    def placed(self) -> Iterator[PlacedPermissions]:
        """The further permissions that the call needs, each with the resource on which it needs them."""
        for place, takes in self._rows.items():
            if place in (_OWN, _DESTINATION):
                continue
            permissions = self._permissions(takes)
            if place.startswith("new."):
                yield from self._exchange(place.removeprefix("new."), permissions)
            else:
                yield from (
                    PlacedPermissions(_fitting_permissions(permissions, each), each)
                    for each in self._references_at(place)
                )

    def moved(self) -> Iterator[PlacedPermissions]:
        """The permissions that a move needs in its destination, as if the resource were there already."""
        moving = self._path_target
        if moving is None or not self._has_compartment:
            return
        permissions = self._needs.permissions | self._permissions(self._rows.get(_DESTINATION, ""))
        for each in self._references_at(_DESTINATION):
            moved = tuple(replace(moving, compartment=target.compartment) for target in each.targets)
            if any(target.compartment != moving.compartment for target in moved):
                yield PlacedPermissions(permissions, replace(each, targets=moved))

    def tagged(self) -> Iterator[PlacedPermissions]:
        """The namespaces of the defined tags that the call adds, changes or removes. "To apply, update, or remove
        defined tags for a resource, a user must be granted permissions on the resource and permissions to use the tag
        namespace" (Oracle, iampolicyreference)."""
        given, kept = self._body.get("definedTags"), self._source("kept").get("definedTags") or {}
        if not isinstance(given, dict) or given == kept:
            return
        namespaces = {space.name.lower(): space for space in self._call.store.live("tag-namespace")}
        for name in sorted({*given, *kept}):
            tags, before = given.get(name, {}), kept.get(name, {})
            if tags == before or not isinstance(tags, dict):
                continue  # what is no map is refused by the call's model
            space, unknown = namespaces.get(name.lower()), [key for key in tags if key not in before]
            if space and unknown:
                known = {tag.name.lower() for tag in self._call.store.live("tag", parent=space.id)}
                unknown = [key for key in unknown if key.lower() not in known]
            if space is None and not unknown:
                continue  # its namespace is gone: it may be removed
            value = f"{name}.{unknown[0]}" if space and unknown else name
            targets = (reference_target(self._call, space),) if space and not unknown else ()
            yield PlacedPermissions(_USE_TAGS, Reference("definedTags", "body", value, targets))

    @property
    def claimed(self) -> frozenset[str]:
        """The permissions that the call needs on resources other than its own."""
        rows = (takes for place, takes in self._rows.items() if place != _OWN)
        return frozenset().union(*(self._permissions(takes) for takes in rows))

    def _exchange(self, field: str, permissions: frozenset[str]) -> Iterator[PlacedPermissions]:
        """The references that a change attaches, and those that it detaches."""
        if self._body.get(field.split("[]")[0]) is None:
            return
        new, old = self._references_at(f"body.{field}"), self._references_at(f"kept.{field}")
        detaching = frozenset(name for name in permissions if name.endswith("_DETACH"))
        for references, others, taken in ((new, old, permissions - detaching), (old, new, detaching)):
            unchanged = [other.value for other in others]
            yield from (
                PlacedPermissions(_fitting_permissions(taken, each), each)
                for each in references
                if each.value not in unchanged
            )

    def _permissions(self, takes: str) -> frozenset[str]:
        words = takes.split()
        if all(_PERMISSION.fullmatch(word) for word in words):
            return frozenset(words)
        cases = (" ".join(case.split()) for case in takes.split(","))
        return frozenset().union(*(self._needs.conditional[case] for case in cases))

    def _references_at(self, place: str) -> list[Reference]:
        *conditions, chosen = place.split(" & ")
        if not all(self._first_alternative(condition) for condition in conditions):
            return []
        return self._first_alternative(chosen)

    def _first_alternative(self, place: str) -> list[Reference]:
        return next((references for path in place.split(" | ") if (references := self._follow(path))), [])

    def _follow(self, path: str) -> list[Reference]:
        first, *further = path.split(" > ")
        source, _, field = first.partition(".")
        references = self._read(source, self._source(source), field)
        for field in further:
            resources = [target.resource for each in references for target in each.targets if target.resource]
            references = [each for resource in resources for each in self._read("kept", resource.body, field)]
        return references

    def _read(self, source: str, value: Any, field: str) -> list[Reference]:
        name = field.rpartition(".")[2].removesuffix("[]")
        kinds = kinds_of(name)
        if source == "kept":  # a stored reference to a deleted resource needs no permission
            stored = (
                (each, find_references_including_deleted(self._call, kinds, each)) for each in values_at(value, field)
            )
            return [Reference(name, source, each, tuple(targets)) for each, targets in stored if targets or not kinds]
        only_ocids = str(table("references")["kinds"].get(name, "")).endswith("?")
        return [
            Reference(name, source, each, tuple(find_references(self._call, kinds, each)))
            for each in values_at(value, field)
            if not only_ocids or str(each).startswith("ocid1.")
        ]

    def _source(self, name: str) -> Mapping[str, Any]:
        sources = {"path": self._call.params, "query": self._call.query, "header": self._call.headers}
        if name == "kept":
            return self._path_target.resource.body if self._path_target and self._path_target.resource else {}
        return self._body if name == "body" else sources[name]

    @cached_property
    def _body(self) -> Mapping[str, Any]:
        body = self._call.json() if self._call.input.body and self._reads_a_body else None
        return body if isinstance(body, dict) else {}

    @property
    def _reads_a_body(self) -> bool:
        return bool(self._call.operation.details) or any("body." in place for place in self._rows.values())

    @cached_property
    def _path_value(self) -> tuple[str, str] | None:
        """The kind and the value of the first parameter of the path that names a resource."""
        named = ((kinds_of(name), value) for name, value in self._call.params.items())
        return next(((kind, value) for kind, value in named if kind), None)

    @cached_property
    def _path_target(self) -> ReferenceTarget | None:
        """The resource that the path names."""
        return (
            next(iter(find_references_including_deleted(self._call, *self._path_value)), None)
            if self._path_value
            else None
        )

    @cached_property
    def _has_compartment(self) -> bool:
        operation = self._call.operation
        return bool(operation.details) and "compartmentId" in models.model_fields(operation.service, operation.details)


def _fitting_permissions(permissions: frozenset[str], reference: Reference) -> frozenset[str]:
    """The permissions that fit the kind of the target, where a name may refer to several kinds."""
    if " " not in kinds_of(reference.name) or not reference.targets:
        return permissions
    return frozenset(name for name in permissions if type_of(name) == f"{reference.targets[0].kind}s")


@dataclass(frozen=True)
class ReferenceTarget:
    """A resource that a call refers to. `resource` None: the compartment itself."""

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
    "tag-namespace": {
        "target.tag-namespace.id": lambda namespace: namespace.id,
        "target.tag-namespace.name": lambda namespace: namespace.name,
    },
    "user": {"target.user.id": lambda user: user.id, "target.user.name": lambda user: user.name},
}


def find_references(call: ApiCall, kinds: str, value: Any) -> list[ReferenceTarget]:
    """The target of a value: an existing resource of one of these kinds, or none."""
    if finder := FINDERS.get(kinds):
        return finder(call, value)
    resource = call.store.get(value) if isinstance(value, str) else None
    return [reference_target(call, resource)] if resource and resource.live and resource.kind in kinds.split() else []


def find_references_including_deleted(call: ApiCall, kinds: str, value: str) -> list[ReferenceTarget]:
    """Like `find`, for a path or a stored resource: also finds a deleted resource, in its last compartment."""
    if kinds == "bucket":
        return FINDERS[kinds](call, value)
    resource = call.store.get(value)
    return [reference_target(call, resource)] if resource and resource.kind in kinds.split() else []


def reference_target(call: ApiCall, resource: StoredResource) -> ReferenceTarget:
    variables = {name: read(resource) for name, read in _VARIABLES.get(resource.kind, {}).items()}
    if resource.kind == "log":  # for policies, a log belongs to the compartment of its group
        group = call.store.get(resource.parent)
        return ReferenceTarget(group.compartment if group else resource.compartment, variables, resource)
    if resource.kind == "user-group-membership":
        return merge_targets(
            [*find_references(call, "user", resource.name), *find_references(call, "group", resource.parent)]
        )
    return ReferenceTarget(resource.compartment, variables, resource)


def merge_targets(targets: list[ReferenceTarget]) -> ReferenceTarget:
    """Joins several targets into one in the tenancy, with the variables of all."""
    return ReferenceTarget(TENANCY, {name: value for target in targets for name, value in target.variables.items()})


def _compartment_target(call: ApiCall, value: Any) -> list[ReferenceTarget]:
    return [ReferenceTarget(value)] if isinstance(value, str) else []


def _bucket_target(call: ApiCall, name: Any) -> list[ReferenceTarget]:
    buckets = call.store.live("bucket", name=name) if isinstance(name, str) else []
    return [reference_target(call, bucket) for bucket in buckets]


def _copy_destination(call: ApiCall, name: Any) -> list[ReferenceTarget]:
    target = _entry_text(call.json(), "destinationObjectName")
    return [
        ReferenceTarget(bucket.compartment, {**bucket.variables, "target.object.name": target}, bucket.resource)
        for bucket in _bucket_target(call, name)
    ]


def _posted_metric(call: ApiCall, entry: Any) -> list[ReferenceTarget]:
    return [
        ReferenceTarget(
            _entry_text(entry, "compartmentId"), {"target.metrics.namespace": _entry_text(entry, "namespace")}
        )
    ]


def _searched_scope(call: ApiCall, query: Any) -> list[ReferenceTarget]:
    """The compartments that a log search names: the first part of each scope."""
    return [ReferenceTarget(place) for place in sorted({scope[0] for scope in query_scopes(str(query))})]


def _pushed_image(call: ApiCall, address: Any) -> list[ReferenceTarget]:
    """The repository that receives a pushed image. A missing one is in the tenancy, where a push creates it."""
    name = pushed_repository(address)
    repositories = call.store.live("container-repository", name=name)
    return (
        [reference_target(call, repositories[0])]
        if repositories
        else [ReferenceTarget(TENANCY, {"target.repo.name": name})]
    )


def _named_secret(call: ApiCall, name: Any) -> list[ReferenceTarget]:
    """The secret that a request names by its name and its vault."""
    secrets = call.store.live("secret", name=name, parent=call.query.get("vaultId", ""))
    return [reference_target(call, secret) for secret in secrets]


def _entry_text(value: Any, name: str) -> str:
    return str(value.get(name)) if isinstance(value, dict) else ""


FINDERS: Mapping[str, Finder] = {
    "bucket": _bucket_target,
    "compartment": _compartment_target,
    "copy-destination": _copy_destination,
    "named-secret": _named_secret,
    "posted-metric": _posted_metric,
    "pushed-image": _pushed_image,
    "searched-scope": _searched_scope,
}
