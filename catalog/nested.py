# SPDX-License-Identifier: Apache-2.0
"""Nested values, as JSON and YAML have them: mappings, lists and scalars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Path = tuple[Any, ...]


def walk_values(value: Any) -> Iterator[Any]:
    """Every part of a value: first the value itself, and each mapping or list before what is in it."""
    waiting = [value]
    while waiting:
        yield (part := waiting.pop())
        if isinstance(part, str):
            continue  # most parts are texts
        if isinstance(part, Mapping):
            waiting += reversed([*part.values()])
        elif isinstance(part, list | tuple):
            waiting += reversed(part)


def walk_places(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The same parts, each with its place."""
    yield path, value
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, item in items:
        yield from walk_places(item, (*path, key))


def walk_texts(value: Any) -> Iterator[str]:
    """Every text in a value, without the keys."""
    return (part for part in walk_values(value) if isinstance(part, str))


def map_values(value: Any, change: Callable[[Any], Any]) -> Any:
    """The value with every part changed. `change` gets mappings and lists too. It leaves a part as it is by returning
    it, and only then the parts in it are changed."""
    changed = change(value)
    if changed is not value:
        return changed
    if isinstance(value, Mapping):
        return {key: map_values(item, change) for key, item in value.items()}
    return [map_values(item, change) for item in value] if isinstance(value, list | tuple) else value
