# SPDX-License-Identifier: Apache-2.0
"""A folder in a bucket, over the HTTP requests that most object stores share. Each store lists in its own way."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import IO
from urllib.parse import quote

from launcher.connections import Connection, StoreAnswer
from launcher.stores import Stored, StoreError


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

    @abstractmethod
    def pages(self, prefix: str) -> Iterator[Stored]:
        """All objects whose full names begin with `prefix`, ordered by name."""

    def give_up_when(self, stopped: Callable[[], bool]) -> None:
        """Stops retries as soon as `stopped` returns True."""
        self.connection.stopped = stopped

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
        return _etag(self.connection.call("PUT", self._target(name), content, headers))

    def put_file(self, name: str, file: IO[bytes], size: int, mtime: float, md5: str) -> str:
        """Streams a file and returns its etag. The store verifies size and digest."""
        headers = {"content-type": "application/octet-stream", "content-length": str(size), "content-md5": md5}
        headers[self.mtime_header] = repr(mtime)
        return _etag(self.connection.call("PUT", self._target(name), file, headers))

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
        return _etag(answer)

    def remove(self, name: str) -> None:
        """Removes an object; it need not exist."""
        try:
            self.connection.call("DELETE", self._target(name))
        except StoreError as error:
            if error.status != 404:
                raise

    def _target(self, name: str) -> str:
        return f"{self.place}/{quote(self.prefix + name)}"


def _etag(answer: StoreAnswer) -> str:
    headers: Mapping[str, str] = answer.headers
    return headers.get("etag", "")
