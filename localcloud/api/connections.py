# SPDX-License-Identifier: Apache-2.0
"""Connections that can be cut, which no ASGI message can ask for, and that send an answer at once, not by halves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from socket import socket
from typing import Any, ClassVar, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

Address = tuple[str, int]
_MOST_HELD_BACK = 64 * 1024


class _Joined:
    """A transport that joins what is written in one turn of the loop: a call less to the kernel for each answer."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._held: list[bytes] = []
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)
        self._size += len(data)
        if self._size > _MOST_HELD_BACK:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        self._held.clear()
        self._transport.abort()

    def _flush(self) -> None:
        if self._held:
            data = b"".join(self._held)
            self._held.clear()
            self._size = 0
            self._transport.write(data)


class Droppable(H11Protocol):
    """uvicorn's own protocol, that can be found by the address of its client."""

    _open: ClassVar[dict[Address, Droppable]] = {}
    companions: set[Droppable] | None = None  # those of the same listening socket, where somebody asks

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, _Joined(transport)))
        if self.client:
            self._open[self.client] = self
        if self.companions is not None:
            self.companions.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.client:
            self._open.pop(self.client, None)
        if self.companions is not None:
            self.companions.discard(self)
        super().connection_lost(exc)


def drop(client: Address) -> None:
    """Ends the connection of a client at once, without a word."""
    if found := Droppable._open.get(client):
        found.transport.abort()


async def serve_also(server: uvicorn.Server, listener: socket) -> Callable[[], None]:
    """Serves one more listening socket; what it gives ends that, with every connection, so that nothing of the
    network the socket is in stays open."""
    living: set[Droppable] = set()

    def connection() -> Droppable:
        made = Droppable(config=server.config, server_state=server.server_state, app_state={})
        made.companions = living
        return made

    serving = await asyncio.get_running_loop().create_server(connection, sock=listener)

    def end() -> None:
        serving.close()
        for each in living:
            each.transport.abort()  # it is lost only when the loop comes round

    return end
