# SPDX-License-Identifier: Apache-2.0
"""Reads the parameters that the model of an operation has: for EC2 and query services, and for JSON services.

EC2 and query services have names with dots, such as `TagSpecification.1.Tag.2.Key`.

A name counts only if it leads to a member of the model. Lists begin at 1 and end at their first gap, as in moto.
Otherwise a policy could allow a call for a tag after a gap, which moto would not set.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from localcloud.aws.aws_errors import Reason, RefusalError, aws_refusal
from localcloud.aws.services import Wire

_MOST_PARTS = 20
_WHOLE = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_JSON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,), "blob": (str,), "boolean": (bool,), "integer": (int,), "long": (int,), "float": (int, float),
    "double": (int, float), "timestamp": (int, float, str), "list": (list,), "map": (dict,), "structure": (dict,),
}  # fmt: skip


@dataclass
class _Node:
    """A node in the tree of names: the value of this name, and the nodes of longer names."""

    name: str
    value: str | None = None
    below: dict[str, _Node] = field(default_factory=dict)


def read_flat_parameters(parameters: Mapping[str, str], shape: Any, wire: Wire) -> dict[str, str]:
    """The parameters of EC2 and query services that the model has, in the order in which moto's parser reads them.
    Refuses values of a wrong type."""
    return dict(_read_structure(_parameter_tree(parameters), shape, wire)) if shape is not None else {}


def write_flat_parameters(value: Any, shape: Any, name: str = "") -> dict[str, str]:
    """The reverse, for EC2: the parameters of a nested value. Members that the model lacks are left out."""
    kind = shape.type_name
    if kind == "structure":
        named = [(_on_wire(key, member, Wire.EC2), value[key], member) for key, member in shape.members.items()
                 if value.get(key) is not None]  # fmt: skip
    elif kind == "list":
        named = [(str(number), item, shape.member) for number, item in enumerate(value, 1)]
    else:
        return {name: str(value).lower() if isinstance(value, bool) else str(value)}
    prefix = f"{name}." if name else ""
    return {
        key: text
        for part, item, member in named
        for key, text in write_flat_parameters(item, member, f"{prefix}{part}").items()
    }


def _parameter_tree(parameters: Mapping[str, str]) -> _Node:
    root = _Node("")
    for name, value in parameters.items():
        parts = name.split(".", _MOST_PARTS)
        if len(parts) > _MOST_PARTS:
            continue
        node = root
        for count, part in enumerate(parts, 1):
            node = node.below.setdefault(part, _Node(".".join(parts[:count])))
        node.value = value
    return root


def _read_structure(node: _Node, shape: Any, wire: Wire) -> Iterator[tuple[str, str]]:
    for name, member in shape.members.items():
        if (below := node.below.get(_on_wire(name, member, wire))) is not None:
            yield from _read_node(below, member, wire)


def _read_node(node: _Node, shape: Any, wire: Wire) -> Iterator[tuple[str, str]]:
    kind = shape.type_name
    if kind == "structure":
        yield from _read_structure(node, shape, wire)
    elif kind == "list":
        if wire is Wire.QUERY and node.value == "":  # an empty list
            yield node.name, ""
            return
        items = node if wire is Wire.EC2 else node.below.get(shape.member.serialization.get("name", "member"))
        number = 1
        while items is not None and (item := items.below.get(str(number))) is not None:
            members = list(_read_node(item, shape.member, wire))
            if not members:
                return
            yield from members
            number += 1
    elif node.value is not None:
        yield node.name, canonical_value(node.value, kind, node.name)


def _on_wire(name: str, member: Any, wire: Wire) -> str:
    own = str(member.serialization.get("name", name))
    if wire is Wire.EC2:
        return str(member.serialization.get("queryName") or own[:1].upper() + own[1:])
    return own


def canonical_value(value: str, kind: str, name: str) -> str:
    """The value in the canonical form of its type. Refuses a value that moto's parser would fail on."""
    try:
        return _CANONICAL[kind](value) if kind in _CANONICAL else value
    except (ValueError, OverflowError, KeyError):
        raise aws_refusal("type", value=value[:60], name=name, kind=kind) from None


def _require_whole_number(value: str) -> str:
    if not _WHOLE.fullmatch(value):
        raise ValueError(value)
    return str(int(value))


def _parse_timestamp(value: str) -> object:
    from botocore.utils import parse_timestamp

    moment: object = parse_timestamp(value)
    return moment


def _unchanged_if(reader: Callable[[str], object]) -> Callable[[str], str]:
    def unchanged(value: str) -> str:
        reader(value)
        return value

    return unchanged


# Type -> a function that returns a value in canonical form, or raises KeyError or ValueError.
_CANONICAL: Mapping[str, Callable[[str], str]] = {
    "boolean": lambda value: {"true": "true", "false": "false"}[value.lower()],
    "integer": _require_whole_number, "long": _require_whole_number, "float": _unchanged_if(float),
    "double": _unchanged_if(float),
    "timestamp": _unchanged_if(_parse_timestamp), "blob": _unchanged_if(base64.b64decode),
}  # fmt: skip


def read_json_parameters(value: Any, shape: Any) -> dict[str, Any]:
    """The parameters of a JSON service that the model has, each with a checked type. Without the check, moto could read
    a list in place of a text differently than the access check."""
    return _read_members(value, shape, "") if shape is not None else {}


def _read_members(value: dict[str, Any], shape: Any, path: str) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for member, one in shape.members.items():
        name = one.serialization.get("name", member)
        if value.get(name) is not None:
            members[name] = _json_value(value[name], one, f"{path}.{name}" if path else name)
    return members


def _json_value(value: Any, shape: Any, path: str) -> Any:
    kind = shape.type_name
    if isinstance(value, float) and kind in ("integer", "long") and value.is_integer():
        value = int(value)
    wrong = not isinstance(value, _JSON_TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")
    if kind == "structure" and getattr(shape, "is_document_type", False):
        return value
    if wrong:
        raise RefusalError(Reason.MALFORMED, f"The value at {path} is not of the type {kind}")
    if kind == "structure":
        return _read_members(value, shape, path)
    if kind == "list":
        return [_json_value(item, shape.member, f"{path}[{number}]") for number, item in enumerate(value)]
    if kind == "map":
        return {key: _json_value(item, shape.value, f"{path}.{key}"[:200]) for key, item in value.items()}
    return value
