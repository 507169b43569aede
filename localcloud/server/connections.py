# SPDX-License-Identifier: Apache-2.0
"""Connections with what ASGI lacks: they can be cut, send an answer in one system call, and time out slow clients. A
node may have only so many at a time, so that it leaves descriptors for others."""

from __future__ import annotations

import asyncio
import math
import os
import resource
from collections import Counter
from collections.abc import Callable
from socket import socket
from typing import Any, ClassVar, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

Address = tuple[str, int]
_MOST_HELD_BACK = 64 * 1024
# Set in the state of a request that arrived at a listener for nodes, not at the one for users.
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


# The timeout for the head of a request, and for each part of its body.
CLIENT_SECONDS = _client_seconds()
# How many files this process opens at most. Some programs that it starts look at each possible number of a file.
_OPEN_FILES = 65536
# The connections of one node, and of all nodes as a share of the files that may be open.
_MOST_OF_A_NODE, _SHARE_OF_NODES = 256, 3 / 4
# An answer may be sent before the request has ended. The rest is then read up to these limits, because the client could
# not read the answer otherwise.
_MOST_UNREAD, _UNREAD_SECONDS = 1024 * 1024, 2.0


def raise_open_files() -> None:
    """Lets this process open as many files as it may: a connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class _JoiningTransport:
    """A transport that joins all writes of one turn of the event loop, which saves a system call for each answer.
    `unread` tells whether the client is still sending: then a close takes effect later."""

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
        """Closes the connection, or a little later if the client is still sending: with unread data the connection
        would be reset, and the client would lose the answer."""
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
    """uvicorn's protocol, which can also be found and cut by the address of its client."""

    _open: ClassVar[dict[Address, DroppableConnection]] = {}
    companions: set[DroppableConnection] | None = None  # the connections of the same extra listener, which is for nodes
    # The connections of nodes, the oldest first, and how many each node has.
    _of_nodes: ClassVar[dict[DroppableConnection, None]] = {}
    _by_node: ClassVar[Counter[Address]] = Counter()

    _joined: _JoiningTransport
    _late: asyncio.TimerHandle | None = None  # ends the connection unless the head of a request arrives in time
    _unread = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._joined = _JoiningTransport(transport, self._is_sending)
        super().connection_made(cast(asyncio.Transport, self._joined))
        self._wait_for_a_head()
        if self.client:
            self._open[self.client] = self
        if self.companions is not None:
            self.companions.add(self)
            self._of_nodes[self] = None
            self._by_node[self._node] += 1
            self._make_room()

    @property
    def _node(self) -> Address:
        """The node at the other end: by its address, in the network of the listener."""
        return (self.client[0] if self.client else "", id(self.companions))

    @property
    def _is_idle(self) -> bool:
        return self.conn.their_state is h11.IDLE and self.conn.our_state is h11.IDLE

    def _make_room(self) -> None:
        """Cuts a connection if this node has too many, or all nodes together: the oldest idle one of the node with the
        most, or else its newest."""
        files, node = resource.getrlimit(resource.RLIMIT_NOFILE)[0], self._node
        for_all = len(self._of_nodes) + 1 if files == resource.RLIM_INFINITY else int(files * _SHARE_OF_NODES)
        if self._by_node[node] <= min(_MOST_OF_A_NODE, for_all // 4):
            if len(self._of_nodes) <= for_all:
                return
            node = max(self._by_node, key=self._by_node.__getitem__)
        theirs = [one for one in self._of_nodes if one._node == node and not one.transport.is_closing()]
        if theirs:
            next((one for one in theirs if one._is_idle and one is not self), theirs[-1]).transport.abort()

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
        self._wait_for_a_head()  # data after the last request may be the beginning of the next

    def _wait_for_a_head(self) -> None:
        """Starts the timeout for a request's head, and for an idle connection."""
        if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
            if self._late is not None:
                self._late.cancel()
                self._late = None
        elif self._late is None and (self.cycle is None or self.conn.trailing_data[0]):
            self._late = self.loop.call_later(CLIENT_SECONDS, self.transport.abort)

    def _is_sending(self) -> bool:
        """Whether the client may still be sending. If the head was not valid, a body may follow."""
        return self.conn.their_state in (h11.SEND_BODY, h11.ERROR)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._late is not None:
            self._late.cancel()
        if self.client:
            self._open.pop(self.client, None)
        if self.companions is not None:
            self.companions.discard(self)
            del self._of_nodes[self]
            self._by_node[self._node] -= 1
            if not self._by_node[self._node]:
                del self._by_node[self._node]
        super().connection_lost(exc)


def drop_connection(client: Address) -> None:
    """Ends the connection of a client at once, without an answer."""
    if connection := DroppableConnection._open.get(client):
        connection.transport.abort()


async def serve_another(server: uvicorn.Server, listener: socket) -> Callable[[], None]:
    """Serves another listening socket. Returns a function that closes the socket and all its connections, so that
    nothing stays open in the socket's network namespace."""
    living: set[DroppableConnection] = set()

    def connection() -> DroppableConnection:
        made = DroppableConnection(config=server.config, server_state=server.server_state, app_state={FOR_NODES: True})
        made.companions = living
        return made

    serving = await asyncio.get_running_loop().create_server(connection, sock=listener)

    def end() -> None:
        serving.close()
        for each in living:
            each.transport.abort()  # the set changes only in the next turn of the loop

    return end
