# SPDX-License-Identifier: Apache-2.0
"""The engine's side of the provider protocol, over a real gRPC channel, and an engine that records messages."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf import empty_pb2

from components.platform.values import Properties
from provider.base.resource import Plugin
from provider.base.serve import start_plugin
from provider.base.wire import (
    decode_struct,
    encode_struct,
    engine_pb2_grpc,
    provider_pb2,
    provider_pb2_grpc,
    status_pb2,
)


@dataclass
class Heard(engine_pb2_grpc.EngineServicer):
    """The log messages that a plugin sent to the engine."""

    lines: list[str] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)
    said: threading.Event = field(default_factory=threading.Event)

    def Log(self, request: Any, context: Any) -> Any:  # noqa: N802
        (self.statuses if request.ephemeral else self.lines).append(request.message)
        self.said.set()
        return empty_pb2.Empty()

    @property
    def everything(self) -> str:
        return "\n".join([*self.lines, *self.statuses])


@dataclass(frozen=True)
class Resource:
    urn: str
    inputs: Properties
    id: str
    outputs: Properties


class Failed(Exception):  # noqa: N818
    """The plugin returned an error. `kept`: the properties that the engine would keep in its state."""

    def __init__(self, error: grpc.RpcError, urn: str, inputs: Properties) -> None:
        super().__init__(error.details())
        self.kept = _kept(error, urn, inputs)


def _kept(error: Any, urn: str, inputs: Properties) -> Resource | None:
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            status = status_pb2.Status.FromString(value)
            detail = provider_pb2.ErrorResourceInitFailed()
            status.details[0].Unpack(detail)
            return Resource(urn, inputs, detail.id, decode_struct(detail.properties))
    return None


class EngineSide:
    def __init__(self, port: int, heard: Heard) -> None:
        self.heard = heard
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.stub: Any = provider_pb2_grpc.ResourceProviderStub(self._channel)

    def close(self) -> None:
        self._channel.close()

    def configure(self, **config: Any) -> None:
        self._ask("Configure", provider_pb2.ConfigureRequest(args=encode_struct(config)))

    def urn(self, token: str, name: str) -> str:
        return f"urn:pulumi:test::project::{token}::{name}"

    def check(
        self, token: str, name: str, inputs: Properties, old: Properties | None = None
    ) -> tuple[Properties, list[str]]:
        answer = self._ask(
            "Check",
            provider_pb2.CheckRequest(
                urn=self.urn(token, name),
                olds=encode_struct(old or {}),
                news=encode_struct(inputs),
                randomSeed=name.encode() * 8,
            ),
        )
        return decode_struct(answer.inputs), [f"{failure.property}: {failure.reason}" for failure in answer.failures]

    def create(self, token: str, name: str, inputs: Properties, old: Properties | None = None) -> Resource:
        checked, failures = self.check(token, name, inputs, old)
        assert not failures, failures
        urn = self.urn(token, name)
        request = provider_pb2.CreateRequest(urn=urn, properties=encode_struct(checked))
        answer = self._ask("Create", request, urn, checked)
        return Resource(urn, checked, answer.id, decode_struct(answer.properties))

    def preview(self, token: str, name: str, inputs: Properties) -> Properties:
        checked, failures = self.check(token, name, inputs)
        assert not failures, failures
        request = provider_pb2.CreateRequest(urn=self.urn(token, name), properties=encode_struct(checked), preview=True)
        return decode_struct(self._ask("Create", request).properties)

    def diff(self, resource: Resource, inputs: Properties) -> Any:
        checked, failures = self._recheck(resource, inputs)
        assert not failures, failures
        return self._ask(
            "Diff",
            provider_pb2.DiffRequest(
                urn=resource.urn,
                id=resource.id,
                olds=encode_struct(resource.outputs),
                old_inputs=encode_struct(resource.inputs),
                news=encode_struct(checked),
            ),
        )

    def update(self, resource: Resource, inputs: Properties) -> Resource:
        checked, failures = self._recheck(resource, inputs)
        assert not failures, failures
        request = provider_pb2.UpdateRequest(
            urn=resource.urn,
            id=resource.id,
            olds=encode_struct(resource.outputs),
            old_inputs=encode_struct(resource.inputs),
            news=encode_struct(checked),
        )
        answer = self._ask("Update", request, resource.urn, checked)
        return Resource(resource.urn, checked, resource.id, decode_struct(answer.properties))

    def refresh(self, resource: Resource) -> Resource | None:
        return self._read(resource.urn, resource.id, resource.outputs, resource.inputs)

    def import_(self, token: str, name: str, id: str) -> Resource | None:  # noqa: A002
        return self._read(self.urn(token, name), id, {}, {})

    def _read(self, urn: str, id: str, outputs: Properties, inputs: Properties) -> Resource | None:  # noqa: A002
        request = provider_pb2.ReadRequest(
            urn=urn, id=id, properties=encode_struct(outputs), inputs=encode_struct(inputs)
        )
        answer = self._ask("Read", request, urn, inputs)
        return (
            Resource(urn, decode_struct(answer.inputs), answer.id, decode_struct(answer.properties))
            if answer.id
            else None
        )

    def delete(self, resource: Resource) -> None:
        request = provider_pb2.DeleteRequest(
            urn=resource.urn,
            id=resource.id,
            properties=encode_struct(resource.outputs),
            old_inputs=encode_struct(resource.inputs),
        )
        self._ask("Delete", request)

    def invoke(self, token: str, args: Properties) -> Properties:
        answer = self._ask("Invoke", provider_pb2.InvokeRequest(tok=token, args=encode_struct(args)))
        return decode_struct(getattr(answer, "return"))

    def cancel(self) -> None:
        self._ask("Cancel", empty_pb2.Empty())

    def _recheck(self, resource: Resource, inputs: Properties) -> tuple[Properties, list[str]]:
        _, _, token, name = resource.urn.split("::", 3)
        return self.check(token, name, inputs, resource.inputs)

    def _ask(self, method: str, request: Any, urn: str = "", inputs: Properties | None = None) -> Any:
        try:
            return getattr(self.stub, method)(request, timeout=120)
        except grpc.RpcError as error:
            raise Failed(error, urn, inputs or {}) from None


@contextmanager
def engine_side(plugin: Plugin) -> Iterator[EngineSide]:
    """Serves the plugin on a real socket, together with an engine."""
    heard = Heard()
    engine = grpc.server(ThreadPoolExecutor(max_workers=4))
    engine_pb2_grpc.add_EngineServicer_to_server(heard, engine)
    port = engine.add_insecure_port("127.0.0.1:0")
    engine.start()
    served = start_plugin(plugin, f"127.0.0.1:{port}")
    client = EngineSide(served.port, heard)
    try:
        yield client
    finally:
        client.close()
        served.stop()
        engine.stop(grace=None).wait()
