# SPDX-License-Identifier: Apache-2.0
"""Old inputs against new ones: which properties differ, and which of these need a new resource."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from components.platform.values import UNKNOWN, Properties, canonical

Kind = Literal["add", "update", "delete"]

_INDEX = re.compile(r"\[\d+\]")
_PLAIN_KEY = re.compile(r"^[A-Za-z_$][A-Za-z0-9_$-]*$")


@dataclass(frozen=True)
class DiffRules:
    """How a resource type changes. Paths are dotted, without list indices, and cover everything below them.

    The cloud fills in `computed` values that are left out, so leaving them out later changes nothing. One element less
    in a list is a change all the same, and so is one key less in a map (`maps` are the names of the maps).
    `unordered` lists are equal in any order. `ignored` properties never make a difference.
    """

    replace: frozenset[str] = frozenset()
    computed: frozenset[str] = frozenset()
    unordered: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    maps: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Change:
    """`reason` explains the change in words if the two values do not."""

    kind: Kind
    replaces: bool
    reason: str = ""


@dataclass(frozen=True)
class Diff:
    changes: Mapping[str, Change] = field(default_factory=dict)
    delete_before_replace: bool = False

    @property
    def replaces(self) -> list[str]:
        return [path for path, change in self.changes.items() if change.replaces]


def compare(old: Properties, new: Properties, rules: DiffRules, delete_before_replace: bool = False) -> Diff:
    changes = {path: Change(kind, is_touched(path, rules.replace)) for path, kind in _walk("", old, new, rules)}
    return Diff(changes, delete_before_replace)


def changed_keys(diff: Diff) -> set[str]:
    """The top-level properties that differ."""
    return {re.split(r"[.\[]", path, maxsplit=1)[0] for path in diff.changes}


def _walk(path: str, old: Any, new: Any, rules: DiffRules, element: bool = False) -> Iterator[tuple[str, Kind]]:
    bare = _bare(path)
    if path and (bare in rules.ignored or _same(old, new, bare in rules.unordered)):
        return
    if old is None and path:
        yield path, "add"
    elif new is None and path:
        if element or not _covered(path, rules.computed):
            yield path, "delete"
    elif isinstance(old, Mapping) and isinstance(new, Mapping):
        is_map = bare.rpartition(".")[2] in rules.maps
        for key in sorted({**old, **new}):
            yield from _walk(join(path, key), old.get(key), new.get(key), rules, is_map)
    elif isinstance(old, list) and isinstance(new, list) and bare not in rules.unordered:
        for index in range(max(len(old), len(new))):
            yield from _walk(f"{path}[{index}]", _at(old, index), _at(new, index), rules, True)
    else:
        yield path, "update"


def _at(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else None


def _same(old: Any, new: Any, unordered: bool) -> bool:
    if old is UNKNOWN or new is UNKNOWN:
        return False
    if unordered and isinstance(old, list) and isinstance(new, list):
        return sorted(map(canonical, old)) == sorted(map(canonical, new))
    return canonical(old) == canonical(new)


def _bare(path: str) -> str:
    return _INDEX.sub("", path)


def is_touched(path: str, replacing: frozenset[str]) -> bool:
    """Whether the path, one above it, or one below it needs a new resource."""
    return _covered(path, replacing) or any(below.startswith(f"{_bare(path)}.") for below in replacing)


def _covered(path: str, covering: frozenset[str]) -> bool:
    bare = _bare(path)
    return any(bare == above or bare.startswith((f"{above}.", f"{above}[")) for above in covering)


def join(path: str, key: str) -> str:
    """The path of a key below a path."""
    if not _PLAIN_KEY.match(key):
        return f"{path}[{json.dumps(key)}]"
    return f"{path}.{key}" if path else key
