# SPDX-License-Identifier: Apache-2.0
"""Repairs data of the wrong shape, so that checks can judge the rest: invalid values are removed, and missing required
ones are taken from the schema's examples. The places whose values are not the file's are recorded."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from catalog.platforms import PLATFORM_KEY, platform_spellings
from schemas.compose import platforms_with_key
from schemas.findings import Path
from schemas.name_suggestions import nearest_name
from schemas.shape import key_namespaces, platform_of, schema_errors

# Rounds of repair: a removed value, for example, may then be missing, and is replaced by an example.
_ROUNDS = 12


@dataclass(frozen=True, slots=True)
class Repaired:
    """The repaired data of a file, and the places whose values are not the file's."""

    data: Mapping[str, Any]
    broken: frozenset[Path]


def repair_data(data: Any) -> Repaired | None:
    """The repaired data. None if too little is valid: no configuration, keys a level too deep, or an unknown
    platform."""
    config = data.get("config") if isinstance(data, Mapping) else None
    if not isinstance(config, Mapping) or config.keys() & key_namespaces():
        return None
    platform_name = config.get(PLATFORM_KEY)
    is_known = isinstance(platform_name, str) and nearest_name(platform_name, platform_spellings())
    if platform_name is not None and not is_known:
        return None
    whole, broken = copy.deepcopy({"config": dict(config)}), set[Path]()
    platform = whole["config"][PLATFORM_KEY] = platform_of(data)
    for _ in range(_ROUNDS):
        errors = schema_errors(whole, platform)
        if not errors:
            return Repaired(whole, frozenset(broken))
        for error in errors:
            broken |= set(_repair_error(whole, error, platform))
    return None


def _repair_error(whole: Any, error: Any, platform: str) -> Iterator[Path]:
    """Repairs the place of one error. Yields the places whose values are no longer the file's."""
    path: Path = tuple(error.absolute_path)
    here = _value_at(whole, path)
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
            # It may be a misspelling of a key that is missing.
            if not platforms_with_key(path, key) and (meant := meant_key(str(key), allowed)):
                yield (*path, meant)
    else:
        if "propertyNames" in error.absolute_schema_path:
            path = (*path, error.instance)
        parent = _value_at(whole, path[:-1]) if path else None
        if isinstance(parent, dict):
            parent.pop(path[-1], None)
        elif isinstance(parent, list) and isinstance(path[-1], int) and path[-1] < len(parent):
            del parent[path[-1]]
        yield path


def meant_key(key: str, allowed: Iterable[str]) -> str | None:
    """The known key that is most like an unknown one, in any namespace."""
    by_name = {name.rpartition(":")[2]: name for name in allowed}
    close = nearest_name(key.rpartition(":")[2], by_name)
    return by_name[close] if close else None


def _value_at(whole: Any, path: Path) -> Any:
    for step in path:
        try:
            whole = whole[step]
        except (KeyError, IndexError, TypeError):
            return None
    return whole
