# SPDX-License-Identifier: Apache-2.0
"""What the author of a provider writes: resources with the rules by which they change, functions, and the plugin that
holds them."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from components.platform.calls import Call, InputFailure
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
    changes = {path: Change(kind, _touches(path, rules.replace)) for path, kind in _walk("", old, new, rules)}
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


def _touches(path: str, replacing: frozenset[str]) -> bool:
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


@dataclass(frozen=True)
class CheckedInputs:
    inputs: Properties
    failures: tuple[InputFailure, ...] = ()


@dataclass(frozen=True)
class CreatedResource:
    id: str
    outputs: Properties


@dataclass(frozen=True)
class LiveResource:
    """A resource as it is now. `inputs` are those that would make it so."""

    id: str
    outputs: Properties
    inputs: Properties


class ProviderResource(ABC):
    """One type of resource. Its methods get plain values: secrets are unwrapped before each call and wrapped after."""

    rules: DiffRules = DiffRules()
    delete_before_replace = False
    secret_outputs: frozenset[str] = frozenset()

    def check(self, call: Call, old: Properties, new: Properties) -> CheckedInputs:
        return CheckedInputs(new)

    def diff(self, call: Call, old: Properties, old_outputs: Properties, new: Properties) -> Diff:
        return compare(old, new, self.rules, self.delete_before_replace)

    def preview(self, inputs: Properties, old_outputs: Properties | None) -> Properties:
        """The outputs that are known before the operation. `old_outputs` is None for a create."""
        return {**(old_outputs or {}), **inputs}

    @abstractmethod
    def create(self, call: Call, inputs: Properties) -> CreatedResource: ...

    @abstractmethod
    def read(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> LiveResource | None: ...  # noqa: A002

    @abstractmethod
    def update(
        self,
        call: Call,
        id: str,  # noqa: A002
        outputs: Properties,
        old: Properties,
        new: Properties,
    ) -> Properties: ...

    @abstractmethod
    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None: ...  # noqa: A002


Function = Callable[[Properties], Properties]


class Plugin(ABC):
    """A provider: its name, its configuration, and the resources it can make."""

    name: str
    version: str

    def check_config(self, config: Properties) -> CheckedInputs:
        return CheckedInputs(config)

    def replacing_config(self, old: Properties, new: Properties) -> Iterable[str]:
        """The configuration keys whose change replaces all resources, such as another region."""
        return ()

    @abstractmethod
    def configure(self, config: Properties) -> None: ...

    @abstractmethod
    def resource(self, token: str) -> ProviderResource | None: ...

    def function(self, token: str) -> Function | None:
        return None

    def schema(self) -> Mapping[str, Any]:
        return {"name": self.name, "version": self.version}


def unknown_where_missing(values: Properties, names: Iterable[str]) -> Properties:
    return {**dict.fromkeys(names, UNKNOWN), **values}
