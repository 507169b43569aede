# SPDX-License-Identifier: Apache-2.0
"""Pulumi property values as plain Python values, and back.

On the wire, secrets, outputs and resources are objects with a signature. Here a secret is a `Secret`, a value that is
known only after the update is `UNKNOWN`, and everything else is plain JSON.
"""

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import struct_pb2

from components.platform.values import UNKNOWN, Properties, Secret, reveal

_SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
_SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"
_OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_RESOURCE: Final = "5cf8f73096256a8f31e491e813e4eb8e"
_UNKNOWN_PREFIX: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


def decode(struct: struct_pb2.Struct) -> Properties:
    return {key: _decode(value) for key, value in struct.fields.items()}


def _decode(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _decode_object(decode(value.struct_value))
    if kind == "list_value":
        return [_decode(item) for item in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "string_value":
        return UNKNOWN if value.string_value.startswith(_UNKNOWN_PREFIX) else value.string_value
    return value.bool_value if kind == "bool_value" else None


def _decode_object(fields: Properties) -> Any:
    signature = fields.get(_SIGNATURE)
    if signature == _SECRET:
        return Secret(reveal(fields.get("value")))
    if signature == _OUTPUT:
        inner = fields.get("value", UNKNOWN)
        return Secret(reveal(inner)) if fields.get("secret") else inner
    if signature == _RESOURCE:
        return fields.get("id") or UNKNOWN if "id" in fields else fields.get("urn")
    return fields


def encode(properties: Mapping[str, Any]) -> struct_pb2.Struct:
    struct = struct_pb2.Struct()
    struct.update({key: _encode(value) for key, value in properties.items()})
    return struct


def _encode(value: Any) -> Any:
    if value is UNKNOWN:
        return _UNKNOWN_PREFIX
    if isinstance(value, Secret):
        return {_SIGNATURE: _SECRET, "value": _encode(reveal(value.value))}
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(item) for item in value]
    return value
