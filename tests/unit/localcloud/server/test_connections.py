# SPDX-License-Identifier: Apache-2.0
"""A node that keeps many connections open leaves room for others."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn

from localcloud.server import connections
from localcloud.server.connections import DroppableConnection, raise_open_files, serve_another


async def _answer(scope: Any, receive: Callable[..., Any], send: Callable[..., Any]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


class Client:
    """Keeps connections to a listener open, from one address."""

    def __init__(self, port: int, address: str) -> None:
        self._port, self._address = port, address
        self._streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def connect(self, times: int) -> None:
        for _ in range(times):
            stream = await asyncio.open_connection("127.0.0.1", self._port, local_addr=(self._address, 0))
            self._streams.append(stream)
            await self._ask(stream)

    async def open_connections(self) -> list[bool]:
        """Which of the connections, the oldest first, still answer."""
        return [await self._ask(stream) for stream in self._streams]

    async def _ask(self, stream: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> bool:
        try:
            stream[1].write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            return b"200" in await stream[0].readuntil(b"\r\n\r\n")
        except (OSError, asyncio.IncompleteReadError):
            return False

    def close(self) -> None:
        for _, writer in self._streams:
            writer.transport.abort()


def _served(test: Callable[[Client, Client], Any]) -> None:
    async def serve() -> None:
        config = uvicorn.Config(_answer, http=DroppableConnection, loop="asyncio", lifespan="off", log_config=None)
        config.load()
        listener = socket.create_server(("127.0.0.1", 0))
        end = await serve_another(uvicorn.Server(config), listener)
        clients = [Client(listener.getsockname()[1], address) for address in ("127.0.0.2", "127.0.0.3")]
        try:
            await test(*clients)
        finally:
            for client in clients:
                client.close()
            end()
            await asyncio.sleep(0.05)

    asyncio.run(serve())
    assert not DroppableConnection._of_nodes
    assert not DroppableConnection._by_node


def test_a_node_keeps_its_newest_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MOST_OF_A_NODE", 3)

    async def test(greedy: Client, other: Client) -> None:
        await other.connect(1)
        await greedy.connect(5)
        assert await greedy.open_connections() == [False, False, True, True, True]
        assert await other.open_connections() == [True]

    _served(test)


def test_nodes_leave_descriptors_and_the_greediest_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_SHARE_OF_NODES", 8.5 / resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    monkeypatch.setattr(connections.DroppableConnection, "_is_idle", property(lambda self: False))

    async def test(greedy: Client, other: Client) -> None:
        await other.connect(2)
        await greedy.connect(4)
        assert await greedy.open_connections() == [True, True, False, False], "its own new ones are cut if none is idle"
        assert await other.open_connections() == [True, True]

    _served(test)


def test_the_soft_limit_of_files_is_raised() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, soft), hard))
        raise_open_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (min(hard, 65536), hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
