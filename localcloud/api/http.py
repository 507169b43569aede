# SPDX-License-Identifier: Apache-2.0
"""What crosses between the HTTP server and the handlers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def read_json(body: bytes) -> Any:
    """JSON as the rest of the world can store it; ValueError otherwise."""
    value = json.loads(body, parse_constant=_no_constant)
    if b"\\u" in body:  # half of a surrogate pair is text to JSON, and to nothing else
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


@dataclass(frozen=True)
class Upload:
    """A streamed body, already on disk under a temporary name; whoever keeps it moves it."""

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


@dataclass(frozen=True)
class FilePart:
    """A reply's body that is a slice of a file."""

    path: Path
    start: int
    length: int


@dataclass(frozen=True)
class Reply:
    """One answer: JSON, a slice of a file, or nothing; or what is still to be waited for."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    file: FilePart | None = None
    later: Callable[[], Awaitable[Reply]] | None = None

    def payload(self) -> bytes:
        """The body as bytes; empty where OCI sends none."""
        return b"" if self.body is None else json.dumps(self.body, separators=(",", ":")).encode()
