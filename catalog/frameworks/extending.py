# SPDX-License-Identifier: Apache-2.0
"""A framework's file that says only what differs from another framework."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def extended(base: Mapping[str, Any], own: Mapping[str, Any]) -> Mapping[str, Any]:
    """The columns of both. Tables keep the rows that `own` does not name. Lists begin with those of `own`, and a port
    replaces the one with its label. Everything else of `own` replaces what `base` says."""
    made = {**base, **own}
    for column in base.keys() & own.keys():
        before, now = base[column], own[column]
        if column == "ports" and _are_tables(before) and _are_tables(now):
            made[column] = _ports(before, now)
        elif isinstance(before, Mapping) and isinstance(now, Mapping):
            made[column] = {**before, **now}
        elif isinstance(before, list) and isinstance(now, list):
            made[column] = [*now, *before]
    return {column: value for column, value in made.items() if column != "extends"}


def _ports(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    replaced = {port.get("label"): port for port in now}
    kept = [replaced.pop(port["label"], port) for port in before]
    return [*kept, *(port for port in now if port.get("label") in replaced)]


def _are_tables(rows: Any) -> bool:
    return isinstance(rows, list) and all(isinstance(row, Mapping) for row in rows)
