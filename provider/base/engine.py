# SPDX-License-Identifier: Apache-2.0
"""Log lines for the person who watches the engine."""

import sys
from typing import Any

import grpc

from components.platform.values import redact
from launcher.escaping import terminal_lines
from provider.base.wire import UNLIMITED_MESSAGES, engine_pb2, engine_pb2_grpc


class Engine:
    """The engine's log; without an engine (a plugin started by hand) the lines go to stderr."""

    def __init__(self, address: str = "") -> None:
        self._stub: Any = None
        if address:
            self._stub = engine_pb2_grpc.EngineStub(grpc.insecure_channel(address, UNLIMITED_MESSAGES))

    def log(self, severity: str, message: str, urn: str = "", ephemeral: bool = False) -> None:
        # The message may quote text of strangers, such as log lines and names. The engine prints it as it is.
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
            print(f"{message} (the engine did not take this line: {error})", file=sys.stderr)


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
        self._engine.log(severity, redact(message, self._secrets), self._urn, ephemeral)
