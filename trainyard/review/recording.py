# SPDX-License-Identifier: Apache-2.0
"""What the process that records programs (record.py) answers with, as JSON.

The two processes may run different releases of trainyard.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from typing import Any

from catalog.nested import map_values
from components.plan.show import to_plain_values
from components.platform.review import SECRET, UNKNOWN, ReviewedResource, Snapshot
from schemas.convert import camel_case

# The version of the JSON between the two processes.
RECORDING_FORMAT = 1
_SECRET_KEY, _UNKNOWN_KEY = "(secret)", "(unknown)"


def empty_recording(name: str, platform: str) -> Recorded:
    """The recording for the missing side of a new or removed stack."""
    return Recorded(Snapshot(name, platform, {}, ()))


@dataclass(frozen=True, slots=True)
class Recorded:
    """A snapshot, with the outputs and resources that the program of the other side gets as its state."""

    snapshot: Snapshot
    outputs: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "format": RECORDING_FORMAT,
            **{column.name: to_plain_values(getattr(self, column.name)) for column in fields(self)},
        }

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> Recorded:
        """Ignores columns that this release does not know."""
        snapshot = value["snapshot"]
        rows = tuple(_from_columns(ReviewedResource, row) for row in snapshot["resources"])
        whole = {**snapshot, "resources": rows}
        return cls(_from_columns(Snapshot, whole), value.get("outputs") or {}, value.get("resources") or {})


def _from_columns(kind: Any, row: Mapping[str, Any]) -> Any:
    values = {column.name: row[camel_case(column.name)] for column in fields(kind) if camel_case(column.name) in row}
    return kind(**{key: tuple(item) if isinstance(item, list) else item for key, item in values.items()})


def resource_of_recording(row: Mapping[str, Any]) -> ReviewedResource:
    """A resource from a row of the recording, with SECRET and UNKNOWN in place of such values."""
    inputs = mask_marked_values(row["inputs"])
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
        custom=row["custom"] or row.get("remote", False),
        provider=row.get("provider"),
        secrets=dict(sorted(secret_digests(row["inputs"]))),
        trigger="" if row["trigger"] is None else str(mask_marked_values(row["trigger"])),
    )


def mask_marked_values(value: Any) -> Any:
    """The value with SECRET and UNKNOWN in place of the marked values."""
    marks = {_SECRET_KEY: SECRET, _UNKNOWN_KEY: UNKNOWN}

    def change(part: Any) -> Any:
        return marks.get(next(iter(part)), part) if isinstance(part, Mapping) and len(part) == 1 else part

    return map_values(value, change)


def secret_digests(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The path of each secret, with a digest of its value."""
    if isinstance(value, Mapping):
        if set(value) == {_SECRET_KEY}:
            yield path, sha256(str(value[_SECRET_KEY]).encode()).hexdigest()[:12]
            return
        for key, item in value.items():
            yield from secret_digests(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from secret_digests(item, f"{path}[{index}]")
