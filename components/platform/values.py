# SPDX-License-Identifier: Apache-2.0
"""Pulumi's property values in Python, and how old ones differ from new ones.

Secrets are `Secret`. Values that are known only after the update are `UNKNOWN`.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from catalog.nested import map_values, walk_values

Properties = dict[str, Any]

# Shorter secrets are not hidden in texts: they occur by chance so often that much of the output would be hidden.
_SHORTEST_TRACED_SECRET: Final = 4


@dataclass(frozen=True, repr=False)
class Secret:
    value: Any

    def __repr__(self) -> str:
        return "Secret(…)"


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"

    def __deepcopy__(self, memo: object) -> "_Unknown":
        return self


UNKNOWN: Final = _Unknown()


def canonical_json(value: Any) -> str:
    """The same text for equal values. A null property equals an absent one."""
    return json.dumps(_without_nulls(value), sort_keys=True, default=repr)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def reveal_secrets(value: Any) -> Any:
    """The same value with every `Secret` replaced by its content."""
    return map_values(value, lambda part: reveal_secrets(part.value) if isinstance(part, Secret) else part)


def has_unknown(value: Any) -> bool:
    return any(part is UNKNOWN or (isinstance(part, Secret) and has_unknown(part.value)) for part in walk_values(value))


def secret_texts(*values: Any) -> frozenset[str]:
    """Every secret text in these values."""
    texts = (text for value in values for text in _secret_leaves(value, inside=False))
    return frozenset(text for text in texts if len(text) >= _SHORTEST_TRACED_SECRET)


def _secret_leaves(value: Any, inside: bool) -> Iterator[str]:
    if isinstance(value, Secret):
        yield from _secret_leaves(value.value, inside=True)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _secret_leaves(item, inside)
    elif isinstance(value, list):
        for item in value:
            yield from _secret_leaves(item, inside)
    elif inside and isinstance(value, str):
        yield value


def seal_secrets(value: Any, *models: Any) -> Any:
    """Marks secrets in `value`: values that are secret at the same place in a model, and texts that hold a secret."""
    texts = secret_texts(*models)
    for model in models:
        value = _seal_places(value, model)

    def seal_text(part: Any) -> Any:
        return Secret(part) if isinstance(part, str) and any(text in part for text in texts) else part

    return map_values(value, seal_text) if texts else value


def _seal_places(value: Any, model: Any) -> Any:
    if isinstance(model, Secret):
        return value if isinstance(value, Secret) else Secret(value)
    if isinstance(model, Mapping) and isinstance(value, Mapping):
        return {key: _seal_places(item, model.get(key)) for key, item in value.items()}
    if (
        isinstance(model, list)
        and isinstance(value, list)
        and any(isinstance(part, Secret) for part in walk_values(model))
    ):
        if len(model) == len(value):
            return [_seal_places(item, marked) for item, marked in zip(value, model, strict=True)]
        return Secret(value)
    return value


def redact_secrets(message: str, texts: frozenset[str]) -> str:
    for text in sorted(texts, key=len, reverse=True):
        message = message.replace(text, "[secret]")
    return message


Kind = Literal["add", "update", "delete"]

_INDEX = re.compile(r"\[\d+\]")
_PLAIN_KEY = re.compile(r"^[A-Za-z_$][A-Za-z0-9_$-]*$")


@dataclass(frozen=True)
class DiffRules:
    """How a resource type changes. Paths are dotted, without list indices, and cover everything below them.

    The cloud fills in `computed` values, so leaving them out changes nothing. A missing list element is always a
    change, and so is a missing key of a map (`maps`: the names of the maps). `unordered` lists are equal in any order.
    `ignored` properties never make a difference.
    """

    replace: frozenset[str] = frozenset()
    computed: frozenset[str] = frozenset()
    unordered: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    maps: frozenset[str] = frozenset()
    # Path -> the value that means the same as none. With `empty_is_unset`, an empty one or False does on other paths.
    unset: Mapping[str, Any] = field(default_factory=dict)
    empty_is_unset: bool = False


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


def compare_inputs(old: Properties, new: Properties, rules: DiffRules, delete_before_replace: bool = False) -> Diff:
    changes = {path: Change(kind, is_touched(path, rules.replace)) for path, kind in _walk_changes("", old, new, rules)}
    return Diff(changes, delete_before_replace)


def changed_keys(paths: Iterable[str]) -> set[str]:
    """The top-level properties of these paths."""
    return {re.split(r"[.\[]", path, maxsplit=1)[0] for path in paths}


def changes_by_element(changes: Mapping[str, Change], old: Properties, new: Properties) -> dict[str, Change]:
    """The changes, with the elements of an unordered list in place of the list."""
    found: dict[str, Change] = {}
    for path, change in changes.items():
        before, after = value_at(path, old), value_at(path, new)
        if isinstance(before, list) and isinstance(after, list) and not change.reason:
            gone, come = _unmatched_indexes(before, after), _unmatched_indexes(after, before)
            kinds: dict[int, Kind] = {}
            for index in gone | come:
                kinds[index] = "update" if index in gone & come else "add" if index in come else "delete"
            found |= {f"{path}[{index}]": Change(kinds[index], change.replaces) for index in sorted(kinds)}
            if kinds:
                continue
        found[path] = change
    return found


def _unmatched_indexes(items: list[Any], others: list[Any]) -> set[int]:
    """The indices of the items that have no equal among the others."""
    left = Counter(map(canonical_json, others))
    unmatched = set()
    for index, text in enumerate(map(canonical_json, items)):
        if left[text] > 0:
            left[text] -= 1
        else:
            unmatched.add(index)
    return unmatched


_STEP = re.compile(r"\[(\d+)\]|\[\"((?:\\.|[^\"\\])*)\"\]|\.?([^.\[]+)")
MISSING: Final = object()


def value_at(path: str, value: Any) -> Any:
    """The value at the path, or the secret that holds it; MISSING if there is none."""
    for index, quoted, name in _STEP.findall(path):
        if isinstance(value, Secret) or value is UNKNOWN:
            return value
        if index:
            value = value[int(index)] if isinstance(value, list) and int(index) < len(value) else MISSING
        else:
            key = json.loads(f'"{quoted}"') if quoted else name
            value = value.get(key, MISSING) if isinstance(value, Mapping) else MISSING
    return value


def _walk_changes(path: str, old: Any, new: Any, rules: DiffRules, element: bool = False) -> Iterator[tuple[str, Kind]]:
    bare = _without_indexes(path)
    if path and (bare in rules.ignored or _are_same_values(old, new, bare in rules.unordered)):
        return
    # A new False is meant, unless it is known to be the default: the cloud's own may be True.
    is_meant = new is False and bare not in rules.unset
    if path and not element and not is_meant and _is_unset(bare, old, rules) and _is_unset(bare, new, rules):
        return
    if old is None and path:
        yield path, "add"
    elif new is None and path:
        if element or not _is_covered(path, rules.computed):
            yield path, "delete"
    elif isinstance(old, Mapping) and isinstance(new, Mapping):
        is_map = bare.rpartition(".")[2] in rules.maps
        for key in sorted({**old, **new}):
            yield from _walk_changes(join_path(path, key), old.get(key), new.get(key), rules, is_map)
    elif isinstance(old, list) and isinstance(new, list) and bare not in rules.unordered:
        for index in range(max(len(old), len(new))):
            yield from _walk_changes(
                f"{path}[{index}]", _item_or_none(old, index), _item_or_none(new, index), rules, True
            )
    elif isinstance(old, list) and isinstance(new, list):
        if not _are_same_values(_without_computed(bare, old, new, rules), new, True):
            yield path, "update"
    else:
        yield path, "update"


def _is_unset(bare: str, value: Any, rules: DiffRules) -> bool:
    """Whether the value of an input means the same as none, as what is read of an imported resource often does."""
    if value is None or value is UNKNOWN or isinstance(value, Secret):
        return value is None
    if bare in rules.unset:
        return bool(value == rules.unset[bare])
    return rules.empty_is_unset and value in (False, "", [], {})


def _without_computed(bare: str, old: list[Any], new: list[Any], rules: DiffRules) -> list[Any]:
    """The old elements without fields that the cloud filled in or that mean nothing, and that no new element has."""
    given = {key for item in new if isinstance(item, Mapping) for key in item}

    def is_kept(key: str, value: Any) -> bool:
        path = join_path(bare, key)
        return key in given or not (_is_covered(path, rules.computed) or _is_unset(path, value, rules))

    return [
        {key: value for key, value in item.items() if is_kept(key, value)} if isinstance(item, Mapping) else item
        for item in old
    ]


def _item_or_none(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else None


def _are_same_values(old: Any, new: Any, unordered: bool) -> bool:
    if old is UNKNOWN or new is UNKNOWN:
        return False
    if isinstance(old, str) and isinstance(new, str):
        return old == new
    if unordered and isinstance(old, list) and isinstance(new, list):
        return sorted(map(canonical_json, old)) == sorted(map(canonical_json, new))
    return canonical_json(old) == canonical_json(new)


def _without_indexes(path: str) -> str:
    return _INDEX.sub("", path)


def is_touched(path: str, replacing: frozenset[str]) -> bool:
    """Whether the path, one above it, or one below it needs a new resource."""
    return _is_covered(path, replacing) or any(below.startswith(f"{_without_indexes(path)}.") for below in replacing)


def _is_covered(path: str, covering: frozenset[str]) -> bool:
    bare = _without_indexes(path)
    return any(bare == above or bare.startswith((f"{above}.", f"{above}[")) for above in covering)


def join_path(path: str, key: str) -> str:
    """The path of a key below a path."""
    if not _PLAIN_KEY.match(key):
        return f"{path}[{json.dumps(key)}]"
    return f"{path}.{key}" if path else key
