# SPDX-License-Identifier: Apache-2.0
"""The live state of a resource, reduced to what its program sets."""

from collections.abc import Mapping
from typing import Any


def project(live: Any, desired: Any, path: str, unordered: frozenset[str]) -> Any:
    """The live value, reduced to the fields that the program sets: fields that the cloud filled in are no drift."""
    if isinstance(live, Mapping) and isinstance(desired, Mapping):
        return {
            key: project(live.get(key), item, f"{path}.{key}" if path else key, unordered)
            for key, item in desired.items()
        }
    if isinstance(live, list) and isinstance(desired, list):
        return _project_list(live, desired, path, unordered)
    return desired if live is None and desired in ("", [], {}, None, False) else live


def _project_list(live: list[Any], desired: list[Any], path: str, unordered: frozenset[str]) -> list[Any]:
    if path not in unordered:
        reduced = [project(one, other, path, unordered) for one, other in zip(live, desired, strict=False)]
        return reduced + live[len(desired) :]
    left, matched = list(live), []
    for item in desired:
        twin = next((one for one in left if project(one, item, path, unordered) == item), None)
        if twin is not None:
            left.remove(twin)
            matched.append(item)
    return matched + left
