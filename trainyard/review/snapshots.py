# SPDX-License-Identifier: Apache-2.0
"""Snapshots as JSON, between two processes that may run two releases of trainyard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from typing import Any

from components.plan.show import plain
from components.platform.review import SECRET, UNKNOWN, ReviewedResource, Snapshot
from schemas.convert import camel

# What one process says to the other. Another number: a release that speaks otherwise.
FORMAT = 1
_SECRET_KEY, _UNKNOWN_KEY = "(secret)", "(unknown)"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A snapshot with what a cloud would have given, by which the other side's program knows what is there."""

    snapshot: Snapshot
    outputs: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **{one.name: plain(getattr(self, one.name)) for one in fields(self)}}

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> Recorded:
        """Columns that this release does not know are left out."""
        snapshot = value["snapshot"]
        rows = tuple(_columns(ReviewedResource, row) for row in snapshot["resources"])
        whole = {**snapshot, "resources": rows}
        return cls(_columns(Snapshot, whole), value.get("outputs") or {}, value.get("resources") or {})


def _columns(kind: Any, row: Mapping[str, Any]) -> Any:
    values = {one.name: row[camel(one.name)] for one in fields(kind) if camel(one.name) in row}
    return kind(**{key: tuple(item) if isinstance(item, list) else item for key, item in values.items()})


def resource_of(row: Mapping[str, Any]) -> ReviewedResource:
    """A row of the recorder, with secrets and unknowns as the texts that stand for them."""
    inputs = masked(row["inputs"])
    return ReviewedResource(
        type=row["type"],
        name=row["name"],
        urn=row["urn"],
        parent=row["parent"],
        inputs=inputs,
        protect=row["protect"],
        retain=row["retain"],
        replaced_for=tuple(row["replacedFor"]),
        ignored=tuple(row["ignored"]),
        aliases=tuple(row["aliases"]),
        id=row["id"],
        custom=row["custom"],
        secrets=dict(sorted(secret_digests(row["inputs"]))),
        trigger="" if row["trigger"] is None else str(masked(row["trigger"])),
    )


def masked(value: Any) -> Any:
    """The value with SECRET and UNKNOWN in place of what was marked so."""
    if isinstance(value, Mapping):
        if set(value) == {_SECRET_KEY}:
            return SECRET
        if set(value) == {_UNKNOWN_KEY}:
            return UNKNOWN
        return {key: masked(item) for key, item in value.items()}
    return [masked(item) for item in value] if isinstance(value, list) else value


def secret_digests(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Where secrets stand, with a digest of each."""
    if isinstance(value, Mapping):
        if set(value) == {_SECRET_KEY}:
            yield path, sha256(str(value[_SECRET_KEY]).encode()).hexdigest()[:12]
            return
        for key, item in value.items():
            yield from secret_digests(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from secret_digests(item, f"{path}[{index}]")
