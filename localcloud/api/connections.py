# SPDX-License-Identifier: Apache-2.0
"""Connections that can be cut: what a fault does to a client, no ASGI message can say."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

Address = tuple[str, int]


class Droppable(H11Protocol):
    """uvicorn's own protocol, that can be found by the address of its client."""

    _open: ClassVar[dict[Address, Droppable]] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.client:
            self._open[self.client] = self

    def connection_lost(self, exc: Exception | None) -> None:
        if self.client:
            self._open.pop(self.client, None)
        super().connection_lost(exc)


def drop(client: Address) -> None:
    """Ends the connection of a client at once, without a word."""
    if found := Droppable._open.get(client):
        found.transport.abort()
