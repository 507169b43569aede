# SPDX-License-Identifier: Apache-2.0
"""Pulumi property values as plain Python values, and back.

On the wire, secrets, outputs and resources are objects with a signature. Here a secret is a `Secret`, a value that is
known only after the update is `UNKNOWN`, and everything else is plain JSON.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf import struct_pb2

Properties = dict[str, Any]

_SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
_SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"
_OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_RESOURCE: Final = "5cf8f73096256a8f31e491e813e4eb8e"
_UNKNOWN_PREFIX: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"

# Shorter secrets are not hidden in texts: they occur so often that half the output would be hidden.
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


def reveal(value: Any) -> Any:
    """The same value without its secret marks."""
    if isinstance(value, Secret):
        return reveal(value.value)
    if isinstance(value, Mapping):
        return {key: reveal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [reveal(item) for item in value]
    return value


def has_unknown(value: Any) -> bool:
    if isinstance(value, Secret):
        return has_unknown(value.value)
    if isinstance(value, Mapping):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(has_unknown(item) for item in value)
    return value is UNKNOWN


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


def seal(value: Any, *models: Any) -> Any:
    """Marks secrets in `value`: what is secret in a model at the same place, and every text that holds a secret."""
    texts = secret_texts(*models)
    for model in models:
        value = _seal_places(value, model)
    return _seal_texts(value, texts) if texts else value


def _seal_places(value: Any, model: Any) -> Any:
    if isinstance(model, Secret):
        return value if isinstance(value, Secret) else Secret(value)
    if isinstance(model, Mapping) and isinstance(value, Mapping):
        return {key: _seal_places(item, model.get(key)) for key, item in value.items()}
    if isinstance(model, list) and isinstance(value, list) and _has_secret(model):
        if len(model) == len(value):
            return [_seal_places(item, marked) for item, marked in zip(value, model, strict=True)]
        return Secret(value)
    return value


def _has_secret(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_has_secret(item) for item in value.values())
    if isinstance(value, list):
        return any(_has_secret(item) for item in value)
    return isinstance(value, Secret)


def _seal_texts(value: Any, texts: frozenset[str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _seal_texts(item, texts) for key, item in value.items()}
    if isinstance(value, list):
        return [_seal_texts(item, texts) for item in value]
    if isinstance(value, str) and any(text in value for text in texts):
        return Secret(value)
    return value


def redact(message: str, texts: frozenset[str]) -> str:
    for text in sorted(texts, key=len, reverse=True):
        message = message.replace(text, "[secret]")
    return message
