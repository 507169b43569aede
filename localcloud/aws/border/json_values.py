# SPDX-License-Identifier: Apache-2.0
"""Reads parameters of JSON services: members of the operation's model, each with its type. The types are checked,
because the judge and moto would read, for example, a list in place of a text differently."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localcloud.aws.errors import Reason, RefusalError

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,), "blob": (str,), "boolean": (bool,), "integer": (int,), "long": (int,), "float": (int, float),
    "double": (int, float), "timestamp": (int, float, str), "list": (list,), "map": (dict,), "structure": (dict,),
}  # fmt: skip


def read(value: Any, shape: Any) -> dict[str, Any]:
    """The members that the model has."""
    return _structure(value, shape, "") if shape is not None else {}


def _structure(value: dict[str, Any], shape: Any, path: str) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for member, one in shape.members.items():
        name = one.serialization.get("name", member)
        if value.get(name) is not None:
            kept[name] = _of(value[name], one, f"{path}.{name}" if path else name)
    return kept


def _of(value: Any, shape: Any, path: str) -> Any:
    kind = shape.type_name
    if isinstance(value, float) and kind in ("integer", "long") and value.is_integer():
        value = int(value)
    wrong = not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")
    if kind == "structure" and getattr(shape, "is_document_type", False):
        return value
    if wrong:
        raise RefusalError(Reason.MALFORMED, f"The value at {path} is not of the type {kind}")
    if kind == "structure":
        return _structure(value, shape, path)
    if kind == "list":
        return [_of(item, shape.member, f"{path}[{number}]") for number, item in enumerate(value)]
    if kind == "map":
        return {key: _of(item, shape.value, f"{path}.{key}"[:200]) for key, item in value.items()}
    return value
