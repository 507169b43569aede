# SPDX-License-Identifier: Apache-2.0
"""The engine's messages, and its property values as plain ones: what a preview does not know is an `Unknown`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from policies.rule import Unknown

if TYPE_CHECKING:
    from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc, plugin_pb2
else:
    from trainyard.engine.protocol import analyzer_pb2, analyzer_pb2_grpc, plugin_pb2

__all__ = ["analyzer_pb2", "analyzer_pb2_grpc", "plain", "plugin_pb2"]

# What the engine writes in place of a text, a number, a list and so on that only `up` will know.
UNKNOWNS: Final = frozenset(
    {
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)
_SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
_SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"
_OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"


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
    signature = fields[_SIGNATURE].string_value if _SIGNATURE in fields else ""
    if signature in (_SECRET, _OUTPUT):
        return _value(fields["value"], path) if "value" in fields else Unknown(path)
    return {key: _value(item, f"{path}.{key}") for key, item in fields.items()}
