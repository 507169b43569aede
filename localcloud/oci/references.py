# SPDX-License-Identifier: Apache-2.0
"""Reads the references in a call. `catalog/references.toml` says where in the request each one is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from catalog.tables import table
from components.oci.iam.permissions import Operation as Needs
from components.oci.iam.permissions import type_of
from localcloud.oci import finders, models
from localcloud.oci.errors import not_found, related_not_found
from localcloud.oci.finders import ReferenceTarget
from localcloud.oci.operations import ApiCall
from localcloud.server.errors import ApiError

_OWN = "own"
_DESTINATION = "body.compartmentId"  # where a move puts the resource that the path names
# Kinds that OCI refuses as if they were in the path, wherever in the request they are.
_AS_IN_THE_PATH = frozenset({"compartment", "copy-destination"})
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
        if self.source != "body" or kinds_of(self.name) in _AS_IN_THE_PATH:
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


def rows_of(operation: str) -> Mapping[str, str]:
    """The rows of one operation: where a reference is, and which permissions it needs."""
    rows: Mapping[str, str] = table("references")["operations"].get(operation, {})
    return rows


class References:
    """All references of one call."""

    def __init__(self, call: ApiCall, needs: Needs) -> None:
        self._call = call
        self._needs = needs
        self._rows = rows_of(call.operation.name)

    @cached_property
    def own(self) -> list[ReferenceTarget]:
        """The targets of the call's own permissions; empty means the tenancy."""
        if _OWN in self._rows:
            parts = [self._references_at(part) for part in self._rows[_OWN].split(" + ")]
            targets = [target for part in parts for reference in part for target in reference.targets]
            return [finders.merge_targets(targets)] if len(parts) > 1 else targets
        if self._kept:
            return [self._kept]
        place = "body" if self._has_compartment else "query"
        if self._in_path:
            return []
        return [target for each in self._references_at(f"{place}.compartmentId") for target in each.targets]

    @property
    def names_in_path(self) -> bool:
        """Whether the path names a resource, existing or not."""
        return self._in_path is not None

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
        """The permissions that a move needs in its destination: the same as if the resource were there already."""
        kept = self._kept
        if kept is None or not self._has_compartment:
            return
        permissions = self._needs.permissions | self._permissions(self._rows.get(_DESTINATION, ""))
        for each in self._references_at(_DESTINATION):
            there = tuple(replace(kept, compartment=target.compartment) for target in each.targets)
            if any(target.compartment != kept.compartment for target in there):
                yield PlacedPermissions(permissions, replace(each, targets=there))

    @property
    def claimed(self) -> frozenset[str]:
        """The permissions that the call's rows need on other resources than its own."""
        rows = (takes for place, takes in self._rows.items() if place != _OWN)
        return frozenset().union(*(self._permissions(takes) for takes in rows))

    def _exchange(self, field: str, permissions: frozenset[str]) -> Iterator[PlacedPermissions]:
        """The references that a change attaches, and those that it detaches."""
        if self._body.get(field.split("[]")[0]) is None:
            return
        new, old = self._references_at(f"body.{field}"), self._references_at(f"kept.{field}")
        detaching = frozenset(name for name in permissions if name.endswith("_DETACH"))
        for references, others, taken in ((new, old, permissions - detaching), (old, new, detaching)):
            there = [other.value for other in others]
            yield from (
                PlacedPermissions(_fitting_permissions(taken, each), each)
                for each in references
                if each.value not in there
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
        if source == "kept":  # a stored reference to something deleted demands no permission
            kept = (
                (each, finders.find_even_deleted(self._call, kinds, each)) for each in finders.values_at(value, field)
            )
            return [Reference(name, source, each, tuple(targets)) for each, targets in kept if targets or not kinds]
        only_ocids = str(table("references")["kinds"].get(name, "")).endswith("?")
        return [
            Reference(name, source, each, tuple(finders.find(self._call, kinds, each)))
            for each in finders.values_at(value, field)
            if not only_ocids or str(each).startswith("ocid1.")
        ]

    def _source(self, name: str) -> Mapping[str, Any]:
        sources = {"path": self._call.params, "query": self._call.query, "header": self._call.headers}
        if name == "kept":
            return self._kept.resource.body if self._kept and self._kept.resource else {}
        return self._body if name == "body" else sources[name]

    @cached_property
    def _body(self) -> Mapping[str, Any]:
        body = self._call.json() if self._call.input.body and self._reads_a_body else None
        return body if isinstance(body, dict) else {}

    @property
    def _reads_a_body(self) -> bool:
        return bool(self._call.operation.details) or any("body." in place for place in self._rows.values())

    @cached_property
    def _in_path(self) -> tuple[str, str] | None:
        """The kind and the value of the first parameter of the path that names a resource."""
        named = ((kinds_of(name), value) for name, value in self._call.params.items())
        return next(((kind, value) for kind, value in named if kind), None)

    @cached_property
    def _kept(self) -> ReferenceTarget | None:
        """The resource that the path names."""
        return next(iter(finders.find_even_deleted(self._call, *self._in_path)), None) if self._in_path else None

    @cached_property
    def _has_compartment(self) -> bool:
        operation = self._call.operation
        return bool(operation.details) and "compartmentId" in models.fields(operation.service, operation.details)


def _fitting_permissions(permissions: frozenset[str], reference: Reference) -> frozenset[str]:
    """The permissions that fit the kind of the target, where a name may refer to several kinds."""
    if " " not in kinds_of(reference.name) or not reference.targets:
        return permissions
    return frozenset(name for name in permissions if type_of(name) == f"{reference.targets[0].kind}s")
