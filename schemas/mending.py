# SPDX-License-Identifier: Apache-2.0
"""Makes the data of a file sound in shape: what the schema refuses is left out, and what is required and missing is
taken from the schema's examples. The places that no longer say what the file says are kept."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from catalog.platforms import PLATFORM_KEY, platforms
from schemas.compose import platforms_with
from schemas.findings import Path
from schemas.names import nearest
from schemas.shape import namespaces, platform_of, schema_errors

# Each round mends what the one before has uncovered: an example in place of a value that was left out, for instance.
_ROUNDS = 12


@dataclass(frozen=True, slots=True)
class Mended:
    """The data of a file, sound in shape, and the places whose values are not the file's."""

    data: Mapping[str, Any]
    broken: frozenset[Path]


def mended(data: Any) -> Mended | None:
    """None if too little is sound: no configuration, keys a level too deep, or a platform that nobody knows."""
    config = data.get("config") if isinstance(data, Mapping) else None
    if not isinstance(config, Mapping) or not _names_a_platform(config) or config.keys() & namespaces():
        return None
    whole, broken = copy.deepcopy({"config": dict(config)}), set[Path]()
    platform = whole["config"][PLATFORM_KEY] = platform_of(data)
    for _ in range(_ROUNDS):
        errors = schema_errors(whole, platform)
        if not errors:
            return Mended(whole, frozenset(broken))
        for error in errors:
            broken |= set(_mend(whole, error, platform))
    return None


def _names_a_platform(config: Mapping[Any, Any]) -> bool:
    named = config.get(PLATFORM_KEY)
    return named is None or (isinstance(named, str) and nearest(named, platforms()) is not None)


def _mend(whole: Any, error: Any, platform: str) -> Iterator[Path]:
    """Changes the data where one error is. Yields the places that no longer say what the file says."""
    path: Path = tuple(error.absolute_path)
    here = _value(whole, path)
    if error.validator == "required" and isinstance(here, dict):
        for key in error.validator_value:
            if key not in here:
                examples = error.schema.get("properties", {}).get(key, {}).get("examples", [None])
                here[key] = copy.deepcopy(examples[0])
                yield (*path, key)
    elif error.validator == "additionalProperties" and isinstance(here, dict):
        allowed = error.schema.get("properties", {})
        for key in [key for key in here if key not in allowed]:
            del here[key]
            # Perhaps it was meant for one that is missing now.
            if not platforms_with(path, key) and (meant := meant_key(str(key), allowed)):
                yield (*path, meant)
    else:
        if "propertyNames" in error.absolute_schema_path:
            path = (*path, error.instance)
        yield _remove(whole, path)


def meant_key(key: str, allowed: Iterable[str]) -> str | None:
    """The key that an unknown one probably stands for, whatever their namespaces."""
    by_name = {name.rpartition(":")[2]: name for name in allowed}
    close = nearest(key.rpartition(":")[2], by_name)
    return by_name[close] if close else None


def _value(whole: Any, path: Path) -> Any:
    for step in path:
        try:
            whole = whole[step]
        except (KeyError, IndexError, TypeError):
            return None
    return whole


def _remove(whole: Any, path: Path) -> Path:
    parent = _value(whole, path[:-1]) if path else None
    if isinstance(parent, dict):
        parent.pop(path[-1], None)
    elif isinstance(parent, list) and isinstance(path[-1], int) and path[-1] < len(parent):
        del parent[path[-1]]
    return path
