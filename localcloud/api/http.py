# SPDX-License-Identifier: Apache-2.0
"""What crosses between the HTTP server and the handlers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from localcloud.api.errors import invalid
from localcloud.api.values import query_parameters, read_json, without_secrets

Json = dict[str, Any]
# Container tools and browsers send these more than once.
_MAY_REPEAT = frozenset({"accept", "accept-encoding", "accept-language", "connection", "cookie", "via"})


@dataclass(frozen=True)
class Upload:
    """A streamed body, on disk under a temporary name. A handler that keeps it moves it."""

    path: Path
    size: int
    md5: str
    sha256: str


@dataclass(frozen=True)
class Request:
    """The head of one request as it came over the wire; header names are in lower case. It goes no further than the
    doors: what they read of it is a value."""

    method: str
    target: str
    path: str
    headers: Mapping[str, str]
    repeated: frozenset[str] = frozenset()  # headers that came more than once: only the last of them is above
    of_a_node: bool = False  # it arrived at the nodes' listener
    client: str = ""  # the address that it came from

    @cached_property
    def query(self) -> Mapping[str, str]:
        """The parameters, each once. InvalidParameter for a query that two readers could read in two ways."""
        return MappingProxyType(query_parameters(self.target.partition("?")[2]))

    @property
    def shown(self) -> str:
        """The target for a log, without tokens and signatures."""
        return without_secrets(self.target)


def require_once(request: Request) -> None:
    """InvalidParameter for a header that stands twice, unless nobody here reads it: programs differ in which counts."""
    if twice := sorted(request.repeated - _MAY_REPEAT):
        raise invalid(f"the header {twice[0][:80]} stands twice")


@dataclass(frozen=True)
class Said:
    """What one call says. It is read once, at the border: who judges the call, carries it out or remembers it gets this
    value and nothing of the request, so that nobody can read another one."""

    params: Mapping[str, str]  # of the path
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    target: str = ""
    body: bytes = b""
    upload: Upload | None = None

    @cached_property
    def json(self) -> Any:
        """The parsed body. ValueError or RecursionError if it is not valid JSON."""
        return read_json(self.body)

    @property
    def digest(self) -> str:
        """Tells two calls apart that bear the same token for retries."""
        content = self.upload.sha256.encode() if self.upload else self.body
        return hashlib.sha256(self.target.encode() + b"\0" + content).hexdigest()


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
