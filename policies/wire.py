# SPDX-License-Identifier: Apache-2.0
"""The engine's messages, and its property values as plain ones: what a preview does not know is an `Unknown`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from catalog.engine_values import OUTPUT, SECRET, SIGNATURE, UNKNOWNS
from policies.rule import Unknown

if TYPE_CHECKING:
    from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc, plugin_pb2
else:
    from trainyard.engine.protocol import analyzer_pb2, analyzer_pb2_grpc, plugin_pb2

__all__ = ["analyzer_pb2", "analyzer_pb2_grpc", "plain", "plugin_pb2"]


def plain(struct: Any) -> dict[str, Any]:
    """The properties of a message. Secrets are judged like other values, and nothing that a rule says repeats one."""
    return {key: _value(value, key) for key, value in struct.fields.items()}


def _value(value: Any, path: str) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _object(value.struct_value.fields, path)
    if kind == "list_value":
        return [_value(item, f"{path}[{index}]") for index, item in enumerate(value.list_value.values)]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "string_value":
        return Unknown(path) if value.string_value in UNKNOWNS else value.string_value
    return value.bool_value if kind == "bool_value" else None


def _object(fields: Any, path: str) -> Any:
    """A mapping, or what stands in an object with a signature. Files and archives stay mappings of their parts."""
    signature = fields[SIGNATURE].string_value if SIGNATURE in fields else ""
    if signature in (SECRET, OUTPUT):
        return _value(fields["value"], path) if "value" in fields else Unknown(path)
    return {key: _value(item, f"{path}.{key}") for key, item in fields.items()}
