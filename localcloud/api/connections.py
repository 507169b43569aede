# SPDX-License-Identifier: Apache-2.0
"""Connections that can be cut: what a fault does to a client, no ASGI message can say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from socket import socket
from typing import ClassVar

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

Address = tuple[str, int]


class Droppable(H11Protocol):
    """uvicorn's own protocol, that can be found by the address of its client."""

    _open: ClassVar[dict[Address, Droppable]] = {}
    companions: set[Droppable] | None = None  # those of the same listening socket, where somebody asks

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
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
