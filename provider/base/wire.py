# SPDX-License-Identifier: Apache-2.0
"""Messages between a plugin and the engine: property values, log lines, and the generated gRPC modules, which only this
module imports.

On the wire, secrets, outputs and resources are objects with a signature. Here a secret is a `Secret`, a value that is
known only after the update is `UNKNOWN`, and everything else is plain JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf import struct_pb2

from catalog.engine_values import OUTPUT, RESOURCE, SECRET, SIGNATURE, UNKNOWN_TEXT
from components.platform.values import UNKNOWN, Properties, Secret, redact_secrets, reveal_secrets
from launcher.escaping import terminal_lines

if TYPE_CHECKING:
    from pulumi.runtime.proto import (
        engine_pb2,
        engine_pb2_grpc,
        plugin_pb2,
        provider_pb2,
        provider_pb2_grpc,
        status_pb2,
    )
else:
    from trainyard.engine.protocol import (
        engine_pb2,
        engine_pb2_grpc,
        plugin_pb2,
        provider_pb2,
        provider_pb2_grpc,
        status_pb2,
    )

UNLIMITED_MESSAGES = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]

__all__ = [
    "UNLIMITED_MESSAGES",
    "Engine",
    "UrnReporter",
    "decode_struct",
    "encode_struct",
    "engine_pb2",
    "engine_pb2_grpc",
    "plugin_pb2",
    "provider_pb2",
    "provider_pb2_grpc",
    "status_pb2",
]


def decode_struct(struct: struct_pb2.Struct) -> Properties:
    return {key: _decode_value(value) for key, value in struct.fields.items()}


def _decode_value(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        fields = decode_struct(value.struct_value)
        signature = fields.get(SIGNATURE)
        if signature == SECRET:
            return Secret(reveal_secrets(fields.get("value")))
        if signature == OUTPUT:
            inner = fields.get("value", UNKNOWN)
            return Secret(reveal_secrets(inner)) if fields.get("secret") else inner
        if signature == RESOURCE:
            return fields.get("id") or UNKNOWN if "id" in fields else fields.get("urn")
        return fields
    if kind == "list_value":
        return [_decode_value(item) for item in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "string_value":
        return UNKNOWN if value.string_value.startswith(UNKNOWN_TEXT) else value.string_value
    return value.bool_value if kind == "bool_value" else None


def encode_struct(properties: Mapping[str, Any]) -> struct_pb2.Struct:
    struct = struct_pb2.Struct()
    struct.update({key: _encode_value(value) for key, value in properties.items()})
    return struct


def _encode_value(value: Any) -> Any:
    if value is UNKNOWN:
        return UNKNOWN_TEXT
    if isinstance(value, Secret):
        return {SIGNATURE: SECRET, "value": _encode_value(reveal_secrets(value.value))}
    if isinstance(value, Mapping):
        return {str(key): _encode_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encode_value(item) for item in value]
    return value


class Engine:
    """The engine's log. Without an engine (a plugin started by hand), the lines go to stderr."""

    def __init__(self, address: str = "") -> None:
        self._stub: Any = None
        if address:
            self._stub = engine_pb2_grpc.EngineStub(grpc.insecure_channel(address, UNLIMITED_MESSAGES))

    def log(self, severity: str, message: str, urn: str = "", ephemeral: bool = False) -> None:
        # The message may quote untrusted text, such as log lines and names. The engine prints it unchanged.
        message = terminal_lines(message)
        if self._stub is None:
            print(message, file=sys.stderr)
            return
        request = engine_pb2.LogRequest(
            severity=engine_pb2.LogSeverity.Value(severity), message=message, urn=urn, ephemeral=ephemeral
        )
        try:
            self._stub.Log(request, timeout=10)
        except grpc.RpcError as error:
            # A line that cannot be shown must not fail its resource.
            print(f"{message} (the engine did not accept this line: {error})", file=sys.stderr)


class UrnReporter:
    """Reports for one resource, with its secrets hidden."""

    def __init__(self, engine: Engine, urn: str, secrets: frozenset[str]) -> None:
        self._engine = engine
        self._urn = urn
        self._secrets = secrets

    def info(self, message: str) -> None:
        self._say("INFO", message)

    def warning(self, message: str) -> None:
        self._say("WARNING", message)

    def status(self, message: str) -> None:
        self._say("INFO", message, ephemeral=True)

    def _say(self, severity: str, message: str, ephemeral: bool = False) -> None:
        self._engine.log(severity, redact_secrets(message, self._secrets), self._urn, ephemeral)
