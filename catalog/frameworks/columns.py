# SPDX-License-Identifier: Apache-2.0
"""Checks the values of a framework's file against the types of its columns. The file is not trusted."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
_CALLED: dict[Any, str] = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}


class FrameworkError(ValueError):
    """A framework's file is invalid."""


def read_columns(kind: type[T], data: Any) -> T:
    """`data` as the columns of `kind`. The first value that does not fit raises a FrameworkError with its name."""
    return cast(T, _read_value(kind, data, ""))


@cache
def _column_types(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _read_value(kind: Any, value: Any, where: str) -> Any:
    if is_dataclass(kind):
        return _read_table(kind, value, where)
    arguments = get_args(kind)
    match get_origin(kind):
        case None:
            fits = type(value) is kind or (kind is float and type(value) is int)
            return value if fits else _raise_framework_error(where, f"must be {_CALLED[kind]}")
        case origin if origin in (Union, types.UnionType):
            alternatives = [kind for kind in arguments if kind is not types.NoneType]
            if len(alternatives) == 1:
                return _read_value(alternatives[0], value, where)
            if type(value) in alternatives:
                return value
            return _raise_framework_error(where, f"must be {' or '.join(_CALLED[kind] for kind in alternatives)}")
        case origin if origin is Literal:
            return (
                value if value in arguments else _raise_framework_error(where, f"must be one of {', '.join(arguments)}")
            )
        case origin if origin is tuple:
            items = value if isinstance(value, list) else _raise_framework_error(where, "must be a list")
            return tuple(_read_value(arguments[0], item, f"{where}[{index}]") for index, item in enumerate(items))
        case _:
            part = value if isinstance(value, Mapping) else _raise_framework_error(where, "must be a table")
            return {key: _read_value(arguments[1], item, f"{where}.{key}") for key, item in part.items()}


def _read_table(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, Mapping):
        _raise_framework_error(where, "must be a table")
    columns = _column_types(kind)
    unknown = next((key for key in value if key not in columns), None)
    if unknown is not None:
        _raise_framework_error(where, f"has no column `{unknown}`; it has {', '.join(sorted(columns))}")
    for column in fields(kind):
        if column.name not in value and column.default is MISSING and column.default_factory is MISSING:
            _raise_framework_error(where, f"needs `{column.name}`")
    below = f"{where}." if where else ""
    return kind(**{key: _read_value(columns[key], item, f"{below}{key}") for key, item in value.items()})


def _raise_framework_error(where: str, why: str) -> Any:
    raise FrameworkError(f"`{where}` {why}" if where else why)


def extend_columns(base: Mapping[str, Any], own: Mapping[str, Any]) -> Mapping[str, Any]:
    """The columns of both. Tables keep the rows of `base` that `own` does not name. Lists begin with the items of
    `own`, and a port replaces the one with its label. Every other value of `own` replaces that of `base`."""
    made = {**base, **own}
    for column in base.keys() & own.keys():
        before, now = base[column], own[column]
        if column == "ports" and _are_tables(before) and _are_tables(now):
            # A port replaces the one of the base with the same label, in its place.
            replaced = {port.get("label"): port for port in now}
            kept = [replaced.pop(port["label"], port) for port in before]
            made[column] = [*kept, *(port for port in now if port.get("label") in replaced)]
        elif isinstance(before, Mapping) and isinstance(now, Mapping):
            made[column] = {**before, **now}
        elif isinstance(before, list) and isinstance(now, list):
            made[column] = [*now, *before]
    return {column: value for column, value in made.items() if column != "extends"}


def _are_tables(rows: Any) -> bool:
    return isinstance(rows, list) and all(isinstance(row, Mapping) for row in rows)
