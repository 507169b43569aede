# SPDX-License-Identifier: Apache-2.0
"""What crosses between the HTTP server and the handlers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from localcloud.api.values import read_json

Json = dict[str, Any]


@dataclass(frozen=True)
class Upload:
    """A streamed body, on disk under a temporary name. A handler that keeps it moves it."""

    path: Path
    size: int
    md5: str
    sha256: str


@dataclass(frozen=True)
class Request:
    """One request as it came over the wire; header names are in lower case."""

    method: str
    target: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    upload: Upload | None = None
    of_a_node: bool = False  # it arrived at the nodes' listener
    client: str = ""  # the address that it came from

    @cached_property
    def json(self) -> Any:
        """The parsed body. ValueError or RecursionError if it is not valid JSON."""
        return read_json(self.body)


@dataclass(frozen=True)
class FilePart:
    """A reply's body that is a slice of a file."""

    path: Path
    start: int
    length: int


@dataclass(frozen=True)
class Reply:
    """One answer: JSON, bytes, a slice of a file, nothing, or (`later`) a coroutine that gives the answer."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    file: FilePart | None = None
    later: Callable[[], Awaitable[Reply]] | None = None
    content: bytes = b""

    def payload(self) -> bytes:
        """The body as bytes; empty where the service sends none."""
        if self.content:
            return self.content
        return b"" if self.body is None else json.dumps(self.body, separators=(",", ":")).encode()


class Body(Protocol):
    """The body of one request, received on demand."""

    async def to_memory(self, most: int) -> bytes:
        """ApiError if it is larger than `most`, or comes too slowly."""


class Door(Protocol):
    """Another API on the cloud's endpoint, such as another provider's, with signatures and errors of its own."""

    def takes(self, request: Request) -> bool: ...

    async def answer(self, request: Request, body: Body) -> tuple[Reply, str]:
        """The reply, and its summary for the server's log."""
