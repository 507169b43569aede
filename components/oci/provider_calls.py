# SPDX-License-Identifier: Apache-2.0
"""Which operations of OCI's API a deployer calls, by what Oracle's provider calls for the types that it makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from catalog.tables import table

STEPS = ("create", "read", "update", "delete")


def operations_of_kind(kind: str) -> tuple[str, ...]:
    """The operations of one kind of thing that a plan makes, in the words of oci_access.toml; none for other kinds."""
    row: Mapping[str, Any] = table("oci_access")["deployer"].get(kind, {})
    calls = table("oci_provider_calls")
    steps = STEPS[:-1] if row.get("kept") else STEPS
    found = [
        *(call for token in row.get("makes", ()) for call in calls_of_type(token, steps)),
        *(call for token in row.get("deletes", ()) for call in calls_of_type(token, ("delete",))),
        *(call for token in row.get("looks_up", ()) for call in calls["functions"][token]["read"]),
        *row.get("more", ()),
    ]
    return tuple(dict.fromkeys(found))


def calls_of_type(token: str, steps: tuple[str, ...] = STEPS) -> Iterator[str]:
    """Every call that these steps of a resource type may make, whatever its inputs are and whichever change."""
    row = table("oci_provider_calls")["types"][token]
    for step in steps:
        yield from row[step]
        for given in row.get("given", {}).values():
            yield from given.get(step, ())
    if "update" in steps:
        for changed in row.get("changed", {}).values():
            yield from changed
