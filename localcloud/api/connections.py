# SPDX-License-Identifier: Apache-2.0
"""Connections as no ASGI message can ask for them: that can be cut, that send an answer at once and not by halves, and
that wait for nobody for ever.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable
from socket import socket
from typing import Any, ClassVar, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

Address = tuple[str, int]
_MOST_HELD_BACK = 64 * 1024
# In the state of a request's scope: it came in where nodes do, not where people do.
FOR_NODES = "for nodes"
_SECONDS_VARIABLE = "TRAINYARD_CLIENT_SECONDS"


def _client_seconds() -> float:
    text = os.environ.get(_SECONDS_VARIABLE) or "30"
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds) or seconds <= 0:
        raise ValueError(f"{_SECONDS_VARIABLE} is {text!a}: give a number of seconds, or leave it out")
    return seconds


# How long a client may take to say what it wants, in seconds: the head of a request, and each part of its body.
CLIENT_SECONDS = _client_seconds()
# What is still read after an answer that came before the end of the request, so that the client can read the answer.
_MOST_UNREAD, _UNREAD_SECONDS = 1024 * 1024, 2.0


class _JoiningTransport:
    """A transport that joins what is written in one turn of the loop: a call less to the kernel for each answer.
    `unread` says at its end whether the client is still sending; then it ends later."""

    def __init__(self, transport: asyncio.Transport, unread: Callable[[], bool]) -> None:
        self._transport = transport
        self._unread = unread
        self.leaving = False
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
        """At once, or, where the client is still sending, once it has had time to read: a connection that is closed
        with something unread takes the answer with it."""
        self._flush()
        if self._transport.is_closing() or not self._unread():
            self._transport.close()
        elif not self.leaving:
            self.leaving = True
            self._transport.write_eof()
            self._transport.resume_reading()
            self._loop.call_later(_UNREAD_SECONDS, self._transport.abort)

    def is_closing(self) -> bool:
        return self.leaving or self._transport.is_closing()

    def abort(self) -> None:
        self._held.clear()
        self._transport.abort()

    def _flush(self) -> None:
        if self._held:
            data = b"".join(self._held)
            self._held.clear()
            self._size = 0
            self._transport.write(data)


class DroppableConnection(H11Protocol):
    """uvicorn's own protocol, that can be found by the address of its client."""

    _open: ClassVar[dict[Address, DroppableConnection]] = {}
    companions: set[DroppableConnection] | None = None  # those of the same listening socket, where somebody asks

    _joined: _JoiningTransport
    _late: asyncio.TimerHandle | None = None  # ends the connection unless the head of a request is there by then
    _unread = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._joined = _JoiningTransport(transport, self._is_sending)
        super().connection_made(cast(asyncio.Transport, self._joined))
        self._wait_for_a_head()
        if self.client:
            self._open[self.client] = self
        if self.companions is not None:
            self.companions.add(self)

    def data_received(self, data: bytes) -> None:
        if self._joined.leaving:
            self._unread += len(data)
            if self._unread > _MOST_UNREAD:
                self.transport.abort()
            return
        super().data_received(data)
        self._wait_for_a_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait_for_a_head()  # what came behind the last request may be the beginning of the next

    def _wait_for_a_head(self) -> None:
        """From its first byte on a request has so long to say what it is, and so has a connection that says nothing."""
        if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
            if self._late is not None:
                self._late.cancel()
                self._late = None
        elif self._late is None and (self.cycle is None or self.conn.trailing_data[0]):
            self._late = self.loop.call_later(CLIENT_SECONDS, self.transport.abort)

    def _is_sending(self) -> bool:
        return self.conn.their_state is h11.SEND_BODY

    def connection_lost(self, exc: Exception | None) -> None:
        if self._late is not None:
            self._late.cancel()
        if self.client:
            self._open.pop(self.client, None)
        if self.companions is not None:
            self.companions.discard(self)
        super().connection_lost(exc)


def drop_connection(client: Address) -> None:
    """Ends the connection of a client at once, without a word."""
    if connection := DroppableConnection._open.get(client):
        connection.transport.abort()


async def serve_another(server: uvicorn.Server, listener: socket) -> Callable[[], None]:
    """Serves one more listening socket; what it gives ends that, with every connection, so that nothing of the
    network the socket is in stays open."""
    living: set[DroppableConnection] = set()

    def connection() -> DroppableConnection:
        made = DroppableConnection(config=server.config, server_state=server.server_state, app_state={FOR_NODES: True})
        made.companions = living
        return made

    serving = await asyncio.get_running_loop().create_server(connection, sock=listener)

    def end() -> None:
        serving.close()
        for each in living:
            each.transport.abort()  # it is lost only when the loop comes round

    return end
