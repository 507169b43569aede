# SPDX-License-Identifier: Apache-2.0
"""Requests, calls and replies, as values between the HTTP server and the handlers; and strict parsers for them."""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote, unquote_plus

from localcloud.server.api_errors import ApiError, invalid_parameter

_YEAR_10000 = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
# The largest signed number of 64 bits.
LARGEST = 2**63 - 1
_MOST_DIGITS = len(str(LARGEST))
_MOST_PARAMETERS = 200
MAXIMUM_BODY = 16 * 1024 * 1024
# Parameters that are masked in the log, so that its readers cannot use them.
_SECRET_PARAMETERS = frozenset({"password", "signature", "token", "x-amz-security-token", "x-amz-signature"})
_TOKEN_IN_PATH = re.compile(r"(?<=/tokens/)[^/?]{40,}")
_MASK = "****"
Json = dict[str, Any]
# Headers that container tools and browsers may send more than once.
_MAY_REPEAT = frozenset({"accept", "accept-encoding", "accept-language", "connection", "cookie", "via"})


def current_moment() -> float:
    return time.time()


def format_rfc3339(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_http_date(moment: float) -> str:
    return formatdate(moment, usegmt=True)


def parse_rfc3339(text: str) -> float:
    """Seconds since the epoch. ValueError for a text that is not a date, or a date that `rfc3339` cannot write."""
    parsed = datetime.fromisoformat(text.replace("Z", "+00:00"))
    moment = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    if moment >= _YEAR_10000:
        raise ValueError(f"{text!r} is later than the year 9999")
    return moment


def parse_strict_json(body: bytes) -> Any:
    """Parses JSON. ValueError for JSON that other programs could not store, or could read differently; RecursionError
    for very deep nesting."""
    value = json.loads(
        body.decode(),
        parse_constant=_refuse_constant,
        parse_int=_parse_whole_number,
        parse_float=_parse_finite_number,
        object_pairs_hook=_refuse_repeated_keys,
    )
    if b"\\u" in body:  # JSON allows half of a surrogate pair, which cannot be encoded
        json.dumps(value, ensure_ascii=False).encode()
    return value


def whole_number(text: str) -> int | None:
    """The number in a text of digits; None for any other text, and for numbers of more than 64 bits."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        return None
    number = int(text)
    return number if number <= LARGEST else None


def path_parameter(text: str) -> str:
    """Decodes one part of a path. Different parts never decode to the same text."""
    try:
        return unquote(text, errors="strict")
    except ValueError:
        raise invalid_parameter(f"{text[:80]!r} is not percent-encoded UTF-8") from None


def parameter_pairs(text: str, most: int) -> list[tuple[str, str]]:
    """The parameters of a query or a form, in their order. UnicodeDecodeError if it is not percent-encoded UTF-8,
    another ValueError if there are more than `most`."""
    return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=most)


def query_parameters(text: str) -> dict[str, str]:
    """The parameters of a query. Refuses a repeated one, because programs differ in which of them counts."""
    try:
        pairs = parameter_pairs(text, _MOST_PARAMETERS)
    except UnicodeDecodeError:
        raise invalid_parameter("the query is not percent-encoded UTF-8") from None
    except ValueError:
        raise invalid_parameter(f"the query has more than {_MOST_PARAMETERS} parameters") from None
    parameters = dict(pairs)
    if len(parameters) < len(pairs):
        raise invalid_parameter("the query repeats a parameter")
    return parameters


def mask_secrets(target: str) -> str:
    """A request's target for the log, with tokens and signatures masked."""
    path, mark, query = target.partition("?")
    parts = [_mask_parameter(part) for part in query.split("&")]
    return _TOKEN_IN_PATH.sub(_MASK, path) + mark + "&".join(parts)


def _mask_parameter(parameter: str) -> str:
    name, mark, _ = parameter.partition("=")
    return f"{name}{mark}{_MASK}" if mark and unquote_plus(name).lower() in _SECRET_PARAMETERS else parameter


def values_at(value: Any, path: str) -> Iterator[Any]:
    """The values at a path such as `rules[].source`; none if the value does not have that structure."""
    name, _, rest = path.partition(".")
    item = value.get(name.removesuffix("[]")) if isinstance(value, Mapping) else None
    items = item if name.endswith("[]") else [item]
    for each in items if isinstance(items, list) else []:
        if rest:
            yield from values_at(each, rest)
        elif each:
            yield each


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("an object repeats a key")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _parse_whole_number(text: str) -> int:
    if whole_number(text.removeprefix("-")) is None:
        raise ValueError("the number does not fit into 64 bits")
    return int(text)


def _parse_finite_number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("the number is not finite")
    return value


@dataclass(frozen=True)
class Upload:
    """A streamed body, on disk under a temporary name. A handler that wants to keep it has to move it."""

    path: Path
    size: int
    md5: str
    sha256: str


@dataclass(frozen=True)
class Request:
    """The head of a request; header names are in lower case. Only APIs read it. Handlers get a `CallInput`."""

    method: str
    target: str
    path: str
    headers: Mapping[str, str]
    repeated: frozenset[str] = frozenset()  # headers that came more than once: only the last of them is above
    of_a_node: bool = False  # it arrived at the nodes' listener
    client: str = ""  # the address that it came from

    @cached_property
    def query(self) -> Mapping[str, str]:
        """The parameters, each once. InvalidParameter for a query that two parsers could read differently."""
        return MappingProxyType(query_parameters(self.target.partition("?")[2]))

    @property
    def shown(self) -> str:
        """The target for a log, without tokens and signatures."""
        return mask_secrets(self.target)


def require_single_headers(request: Request) -> None:
    """InvalidParameter for a repeated header, because programs differ in which one counts. Those in `_MAY_REPEAT` do no
    harm, because nothing here reads them."""
    if twice := sorted(request.repeated - _MAY_REPEAT):
        raise invalid_parameter(f"the header {twice[0][:80]} is repeated")


@dataclass(frozen=True)
class CallInput:
    """The content of a call, which is parsed once from the request. All later code gets only this value, so that a call
    is authorized and carried out with the same content."""

    params: Mapping[str, str]  # of the path
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    target: str = ""
    body: bytes = b""
    upload: Upload | None = None

    @cached_property
    def json(self) -> Any:
        """The parsed body. ValueError or RecursionError if it is not valid JSON."""
        return parse_strict_json(self.body)

    @property
    def digest(self) -> str:
        """A digest that tells two different calls with the same retry token apart."""
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
    """An answer: JSON, bytes, a slice of a file, nothing, or (`later`) a coroutine that returns the answer."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    file: FilePart | None = None
    later: Callable[[], Awaitable[Reply]] | None = None
    content: bytes = b""

    def payload(self) -> bytes:
        """The body as bytes; empty if there is none."""
        if self.content:
            return self.content
        return b"" if self.body is None else json.dumps(self.body, separators=(",", ":")).encode()


def plain_refusal(error: ApiError) -> Reply:
    """A refusal as JSON: its code and its message."""
    return Reply(error.status, {"code": error.code, "message": error.message})


class Body(Protocol):
    """The body of a request, received on demand. ApiError if it is too large or too slow."""

    async def to_memory(self, most: int = MAXIMUM_BODY) -> bytes: ...

    async def to_file(self, path: Path) -> Upload: ...


class HttpApi(Protocol):
    """One API on the cloud's endpoint, with its own signatures and its own format for refusals.

    `localcloud.server.app` turns everything that `answer` raises into a refusal.
    """

    def takes(self, request: Request) -> bool: ...

    async def answer(self, request: Request, body: Body) -> tuple[Reply, str]:
        """The reply, and its summary for the server's log."""

    def refused(self, request: Request, error: ApiError) -> Reply:
        """Writes a refusal, or a failure of the local cloud (`CloudFailureError`), in this API's format."""

    def operation(self, request: Request) -> str:
        """The name of a refused request in the log; empty if the refusal itself is enough."""
