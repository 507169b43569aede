# SPDX-License-Identifier: Apache-2.0
"""Object stores over HTTP: signed calls over one persistent connection, and a folder in a bucket.

Transient errors are retried, and the log says so. A platform's `Signer` signs requests, and reads the store's error
messages. A platform's folder lists objects in its own way; all other requests are alike.
"""

from __future__ import annotations

import http.client
import os
import random
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import IO, Union
from urllib.parse import quote, urlsplit

from launcher.compatibility import Protocol
from launcher.printing import LinePrinter
from launcher.stores import ChangedError, Stored, StoreError

Body = Union[bytes, "IO[bytes]", None]
BAD_DIGEST, STALE = "digest", "stale"
_PASSING = frozenset({408, 409, 429, 500, 502, 503, 504})
_SKEW_SECONDS = 30.0
# Signatures are valid for five minutes. A poll that repeats a request reuses its signature for this long.
_SIGNATURE_SECONDS = 60.0
_LONGEST_PAUSE = 8.0
_SAY_AFTER = 5.0


class _StaleError(StoreError):
    """A new signature may help."""


@dataclass(frozen=True)
class StoreAnswer:
    """The store's answer. If the call had `into`, the content is there instead."""

    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True)
class Refusal:
    """A refusal by the store. `kind` BAD_DIGEST: the content has another digest than the request said. STALE: a new
    signature may help, because the clock was wrong or the credentials have expired."""

    text: str
    kind: str = ""


class Signer(Protocol):
    """Signs as this node. `offset` is how far the store's clock is ahead of this node's."""

    offset: float

    def headers(self, method: str, target: str, host: str, headers: Mapping[str, str], body: Body) -> dict[str, str]:
        """All headers to send: the given ones and those of the signature."""

    def refusal(self, status: int, content: bytes) -> Refusal | None:
        """Reads a refusal; None if the answer is not in the store's format."""


class Connection:
    """One thread's connection to the object store. `stopped` ends retries early."""

    def __init__(
        self,
        endpoint: str,
        signer: Signer,
        say: LinePrinter,
        seconds: float = 60.0,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        parts = urlsplit(endpoint)
        self.host = parts.netloc
        self.host_name = parts.hostname or ""
        self._secure = parts.scheme == "https"
        self._signer = signer
        self.say = say
        self.seconds = seconds
        self.stopped = stopped
        self.trouble = ""
        # How far the store's clock is ahead of this node's, by its first answer.
        self.clock_ahead: float | None = None
        self._connection: http.client.HTTPConnection | None = None
        self._signed: dict[str, tuple[float, dict[str, str]]] = {}

    def call(
        self, method: str, target: str, body: Body = None, headers: Mapping[str, str] | None = None,
        into: IO[bytes] | None = None,
    ) -> StoreAnswer:  # fmt: skip
        """Calls the store. Retries until it answers or refuses, or `seconds` have passed."""
        started, reported, pause, stale = time.monotonic(), False, 0.1, 0
        while True:
            try:
                answer = self._once(method, target, body, headers or {}, into)
                self.trouble = ""
                return answer
            except StoreError as error:
                if isinstance(error, _StaleError) and stale < 2:
                    stale += 1
                    continue
                if error.status not in _PASSING:
                    self.trouble = ""
                    raise
                problem = str(error)
            except (OSError, http.client.HTTPException) as error:
                problem = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            except BaseException:
                # Half of a request may have been sent on this connection.
                self.close()
                raise
            self.close()
            waited, self.trouble = time.monotonic() - started, problem
            if waited > self.seconds or self.stopped():
                raise StoreError(0, f"the object store at {self.host} did not answer for {waited:.0f} s: {problem}")
            if waited > _SAY_AFTER and not reported:
                reported = True
                self.say(f"the object store does not answer ({problem}); trying for {self.seconds:.0f} s")
            time.sleep(random.uniform(pause / 2, pause))
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _once(
        self, method: str, target: str, body: Body, headers: Mapping[str, str], into: IO[bytes] | None
    ) -> StoreAnswer:
        if body is not None and not isinstance(body, bytes):
            body.seek(0)
        if into is not None:
            into.seek(0)
            into.truncate()
        connection = self._open()
        connection.request(method, target, body=body, headers=self._headers(method, target, headers, body))
        response = connection.getresponse()
        if self.clock_ahead is None:
            self.clock_ahead = _seconds_ahead(response.getheader("Date"))
        if response.status >= 300:
            content = response.read(65536)
            self._refuse(response, content, f"{method} {target.partition('?')[0]}")
        if into is None:
            return StoreAnswer({name.lower(): value for name, value in response.getheaders()}, response.read())
        shutil.copyfileobj(response, into, 1 << 20)
        return StoreAnswer({name.lower(): value for name, value in response.getheaders()}, b"")

    def _refuse(self, response: http.client.HTTPResponse, content: bytes, asked: str) -> None:
        refusal = self._signer.refusal(response.status, content) or Refusal(response.reason)
        if refusal.kind == STALE:
            self._learn_clock(response.getheader("Date"))
        kind = {BAD_DIGEST: ChangedError, STALE: _StaleError}.get(refusal.kind, StoreError)
        raise kind(response.status, f"{response.status} {refusal.text} ({asked})")

    def _learn_clock(self, date: str | None) -> None:
        """Learns the difference to the store's clock, because a wrong clock makes every signature stale."""
        self._signed.clear()
        offset = _seconds_ahead(date)
        if offset is not None and abs(offset - self._signer.offset) > _SKEW_SECONDS:
            self._signer.offset = offset
            self.say(f"this node's clock is off by {-offset:.0f} s; requests are signed with the cloud's time")

    def _headers(self, method: str, target: str, headers: Mapping[str, str], body: Body) -> dict[str, str]:
        if method != "GET":
            return self._signer.headers(method, target, self.host, headers, body)
        until, signed = self._signed.get(target, (0.0, {}))
        if time.monotonic() >= until:
            signed = self._signer.headers(method, target, self.host, headers, body)
            self._signed = {target: (time.monotonic() + _SIGNATURE_SECONDS, signed)}
        return signed

    def _open(self) -> http.client.HTTPConnection:
        if self._connection is None:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            self._connection = kind(self.host, timeout=20)
        return self._connection

    def close(self) -> None:
        """Closes the connection; the next call opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class BucketFolder(ABC):
    """Names are relative to the folder. `place` is the beginning of the objects' paths; the header `mtime_header` keeps
    a file's modification time."""

    mtime_header = ""

    def __init__(self, uri: str, connection: Connection, place: str, prefix: str) -> None:
        self.uri = uri
        self.host = connection.host_name
        self.connection = connection
        self.place = place
        self.prefix = prefix.strip("/") + "/" if prefix.strip("/") else ""

    @property
    def trouble(self) -> str:
        """Why calls fail at the moment; empty if the last one was answered."""
        return self.connection.trouble

    @abstractmethod
    def pages(self, prefix: str) -> Iterator[Stored]:
        """All objects whose full names begin with `prefix`, ordered by name."""

    @property
    def clock_ahead(self) -> float | None:
        """How far the store's clock is ahead of this node's; None if the store has not answered yet."""
        return self.connection.clock_ahead

    def give_up_when(self, stopped: Callable[[], bool]) -> None:
        """Stops retries as soon as `stopped` returns True."""
        self.connection.stopped = stopped

    def report_to(self, say: LinePrinter) -> None:
        """Says from now on there what keeps the store from answering."""
        self.connection.say = say

    def close(self) -> None:
        """Ends the connection; the next use opens it again."""
        self.connection.close()

    def list(self, below: str) -> list[Stored]:
        """All objects below a path, ordered by name."""
        return list(self.pages(self.prefix + below))

    def put(self, name: str, content: bytes, new: bool = False) -> str:
        """Puts an object and returns its etag. `new`: fails with 412 if the object exists already."""
        headers = {"content-type": "application/json", "content-length": str(len(content))}
        if new:
            headers["if-none-match"] = "*"
        return _etag_of_answer(self.connection.call("PUT", self._target(name), content, headers))

    def put_file(self, name: str, file: IO[bytes], size: int, mtime: float, md5: str) -> str:
        """Streams a file and returns its etag. The store verifies size and digest."""
        headers = {"content-type": "application/octet-stream", "content-length": str(size), "content-md5": md5}
        headers[self.mtime_header] = repr(mtime)
        return _etag_of_answer(self.connection.call("PUT", self._target(name), file, headers))

    def get(self, name: str) -> bytes | None:
        """The content of an object; None if there is no such object."""
        try:
            return self.connection.call("GET", self._target(name)).content
        except StoreError as error:
            if error.status == 404:
                return None
            raise

    def get_file(self, name: str, path: str) -> str:
        """Writes an object beside `path`, moves it there with its modification time, and returns its etag."""
        draft = f"{path}.trainyard-new"
        try:
            with open(draft, "wb") as file:
                answer = self.connection.call("GET", self._target(name), into=file)
            mtime = answer.headers.get(self.mtime_header)
            if mtime:
                # Another program may have put the object, with another form of time.
                with suppress(ValueError, OverflowError):
                    os.utime(draft, (float(mtime), float(mtime)))
            os.replace(draft, path)
        finally:
            if os.path.exists(draft):
                os.remove(draft)
        return _etag_of_answer(answer)

    def remove(self, name: str) -> None:
        """Removes an object; it need not exist."""
        try:
            self.connection.call("DELETE", self._target(name))
        except StoreError as error:
            if error.status != 404:
                raise

    def _target(self, name: str) -> str:
        return f"{self.place}/{quote(self.prefix + name)}"


def _seconds_ahead(date: str | None) -> float | None:
    """How far the clock behind a header `Date` is ahead of this node's. None without a valid one."""
    try:
        return parsedate_to_datetime(date or "").timestamp() - time.time()
    except (TypeError, ValueError):
        return None


def _etag_of_answer(answer: StoreAnswer) -> str:
    headers: Mapping[str, str] = answer.headers
    return headers.get("etag", "")
