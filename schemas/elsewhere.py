# SPDX-License-Identifier: Apache-2.0
"""Keys that other platforms have: one stack file may serve several, so such a key is no mistake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from catalog.platforms import platforms
from schemas.compose import schema_of
from schemas.findings import Path


def platforms_with(path: Path, key: str) -> list[str]:
    """The platforms whose stack files may have this key at this place."""
    return [name for name in platforms() if any(key in one.get("properties", ()) for one in _at(name, path))]


def properties_at(platform: str, path: Path, key: str) -> Iterator[Mapping[str, Any]]:
    """What a platform's schema says of a key at this place, in each alternative."""
    for one in _at(platform, path):
        if key in one.get("properties", ()):
            yield one["properties"][key]


def without(data: Any, paths: frozenset[Path], here: Path = ()) -> Any:
    """The same values without these keys."""
    if isinstance(data, Mapping):
        return {key: without(item, paths, (*here, key)) for key, item in data.items() if (*here, key) not in paths}
    if isinstance(data, list):
        return [without(item, paths, (*here, index)) for index, item in enumerate(data)]
    return data


def _at(platform: str, path: Path) -> Iterator[Mapping[str, Any]]:
    """What a platform's schema may say of the value at this place: each alternative."""
    whole = schema_of(platform)
    places = [whole]
    for step in path:
        places = [below for one in places for below in _below(whole, one, step)]
    return iter(places)


def _below(whole: Mapping[str, Any], schema: Mapping[str, Any], step: str | int) -> Iterator[Mapping[str, Any]]:
    named = schema.get("properties", {}).get(step, schema.get("additionalProperties"))
    below = schema.get("items") if isinstance(step, int) else named
    if isinstance(below, Mapping):
        yield from _alternatives(whole, below)


def _alternatives(whole: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "$ref" in schema:
        yield from _alternatives(whole, whole["$defs"][schema["$ref"].rpartition("/")[2]])
    for one in schema.get("anyOf", ()):
        yield from _alternatives(whole, one)
    yield schema
