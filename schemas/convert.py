# SPDX-License-Identifier: Apache-2.0
"""Converts between plain values and the frozen model, by the dataclasses' types alone.

`structure_model` expects values of the right shape, which schemas/shape.py checks first.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from schemas.model import Secret
from schemas.scalars import is_secret

T = TypeVar("T")
_Reader = Callable[[Any], Any]


class ShapeError(ValueError):
    """A value that no type of the model fits."""


@cache
def camel_case(name: str) -> str:
    """The key of the file for a field of the model."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def structure_model(model: Callable[..., T], value: Any) -> T:
    """A frozen value of the model from plain mappings, lists and scalars."""
    result: T = _reader_of(model)(value)
    return result


def unstructure_model(value: Any) -> Any:
    """Plain values that `structure_model` turns back into the same model. Defaults are left out."""
    if isinstance(value, Secret):
        return {"secure": value.value or "sealed"}
    if hasattr(value, "to_shorthand"):
        return value.to_shorthand()
    if is_dataclass(value):
        return {
            camel_case(column.name): unstructure_model(item)
            for column in fields(value)
            if (item := getattr(value, column.name)) != default_of(column) or default_of(column) is MISSING
        }
    if isinstance(value, Mapping):
        return {key: unstructure_model(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [unstructure_model(item) for item in value]
    return value


def seal_secrets(kind: Any, value: Any) -> Any:
    """The value, with every text that may be a secret wrapped, for keys with secrets at an unknown place."""
    if is_dataclass(kind) and isinstance(value, Mapping):
        hints = types_by_key(cast(type, kind))
        return {key: seal_secrets(hints[key], item) if key in hints else item for key, item in value.items()}
    choices = get_args(kind) if get_origin(kind) in _UNIONS else (kind,)
    if Secret in choices:
        return {"secure": value} if isinstance(value, str) else value
    for choice in choices:
        if get_origin(choice) in _MAPPINGS and isinstance(value, Mapping):
            return {key: seal_secrets(get_args(choice)[1], item) for key, item in value.items()}
        if get_origin(choice) is tuple and isinstance(value, list):
            return [seal_secrets(get_args(choice)[0], item) for item in value]
        if is_dataclass(choice) and choice is not kind:
            return seal_secrets(choice, value)
    return value


@cache
def types_by_key(model: Any) -> Mapping[str, Any]:
    """Key of the file -> type, for every field of a dataclass."""
    hints = get_type_hints(model)
    return {camel_case(column.name): hints[column.name] for column in fields(model)}


def default_of(column: Any) -> Any:
    return column.default_factory() if column.default_factory is not MISSING else column.default


_MAPPINGS = (Mapping, dict)
_UNIONS = (Union, types.UnionType)


@cache
def _reader_of(kind: Any) -> _Reader:
    """The reader for values of a type. Each type gets one reader, built once."""
    if kind is Secret:
        return _read_secret
    if kind is Any:
        return lambda value: value
    if is_dataclass(kind):
        return _dataclass_reader(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in _UNIONS:
        return _union_reader(arguments)
    if origin in _MAPPINGS:
        item = _reader_of(arguments[1])
        return lambda value: {str(key): item(part) for key, part in _require_type(Mapping, value).items()}
    if origin is tuple:
        part = _reader_of(arguments[0])
        return lambda value: tuple(part(item) for item in _require_type(list, value))
    if origin is Literal:
        return lambda value: value if value in arguments else _raise_shape_error(value)

    def read(value: Any) -> Any:
        if kind is int and isinstance(value, float) and value.is_integer():
            return int(value)
        if kind is float and type(value) is int:
            return float(value)
        return value if type(value) is kind else _raise_shape_error(value)

    return read


def _dataclass_reader(model: Any) -> _Reader:
    by_key = {camel_case(column.name): column.name for column in fields(model)}

    def read(value: Any) -> Any:
        readers = {key: _reader_of(hint) for key, hint in types_by_key(model).items()}
        if not isinstance(value, Mapping):
            shorthand = getattr(model, "from_shorthand", None)
            # 3.0 is a whole number in JSON Schema and for the engine.
            whole = isinstance(value, float) and value.is_integer()
            return shorthand(int(value) if whole else value) if shorthand else _raise_shape_error(value)
        try:
            return model(**{by_key[key]: readers[key](item) for key, item in value.items()})
        except (KeyError, TypeError) as problem:
            raise ShapeError(f"{model.__name__}: {problem}") from problem

    return read


def _union_reader(arguments: tuple[Any, ...]) -> _Reader:
    """Reads as the first alternative that fits. Literals and scalars come first, because they are the narrowest."""
    ordered = sorted(arguments, key=lambda kind: is_dataclass(kind) and kind is not Secret)
    readers = [_reader_of(kind) for kind in ordered if kind is not types.NoneType]
    optional = types.NoneType in arguments

    def read(value: Any) -> Any:
        if value is None and optional:
            return None
        for reader in readers:
            try:
                return reader(value)
            except ShapeError:
                continue
        return _raise_shape_error(value)

    return read


def _read_secret(value: Any) -> Secret:
    if is_secret(value):
        return Secret(value["secure"] or None)
    raise ShapeError("is not a secret")


def _require_type(kind: Any, value: Any) -> Any:
    return value if isinstance(value, kind) else _raise_shape_error(value)


def _raise_shape_error(value: Any) -> Any:
    raise ShapeError(f"{type(value).__name__} does not fit")
