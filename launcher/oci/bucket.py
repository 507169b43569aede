# SPDX-License-Identifier: Apache-2.0
"""A folder in a bucket: what is listed, put, read and removed there."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import IO, Any
from urllib.parse import quote

from launcher.errors import LaunchError
from launcher.oci.connection import Connection, StoreAnswer
from launcher.oci.principal import Signer, storage_endpoint
from launcher.say import Voice
from launcher.stores import Stored, StoreError

_URI = re.compile(r"oci://([^@/]+)@([^/]+)/?(.*)")
_MTIME = "opc-meta-mtime"


class Store:
    """OCI's object storage. All connections sign with one key, by one clock."""

    def __init__(self, environment: Mapping[str, str], say: Voice) -> None:
        self._environment = environment
        self._say = say
        self._signer = Signer(environment)

    def folder(self, uri: str) -> BucketFolder:
        """With a connection of its own."""
        return BucketFolder(uri, Connection(storage_endpoint(self._environment), self._signer, self._say))


class BucketFolder:
    """`oci://<bucket>@<namespace>/<prefix>`: the names below are relative to it."""

    def __init__(self, uri: str, connection: Connection) -> None:
        match = _URI.fullmatch(uri)
        if not match:
            raise LaunchError(f"`{uri}` is not a folder in a bucket: write oci://<bucket>@<namespace>/<folder>")
        bucket, namespace, prefix = match.groups()
        self.uri = uri
        self.host = connection.host_name
        self._connection = connection
        self._prefix = prefix.strip("/") + "/" if prefix.strip("/") else ""
        self._base = f"/n/{quote(namespace, safe='')}/b/{quote(bucket, safe='')}/o"

    def give_up_when(self, stopped: Callable[[], bool]) -> None:
        """Ends a long series of attempts once this is so."""
        self._connection.stopped = stopped

    def close(self) -> None:
        """Ends the connection; the next use opens it again."""
        self._connection.close()

    def list(self, below: str) -> list[Stored]:
        """All objects below, in order of their names."""
        return list(self._pages(self._prefix + below))

    def _pages(self, prefix: str) -> Iterator[Stored]:
        start = ""
        while True:
            query = f"prefix={quote(prefix, safe='')}&fields=name,timeModified,size,etag&limit=1000"
            if start:
                query += f"&start={quote(start, safe='')}"
            page: Any = json.loads(self._connection.call("GET", f"{self._base}?{query}").content)
            for row in page["objects"]:
                name = row["name"][len(self._prefix) :]
                yield Stored(name, row.get("timeModified", ""), row.get("size", 0), row.get("etag", ""))
            start = page.get("nextStartWith") or ""
            if not start:
                return

    def put(self, name: str, content: bytes, new: bool = False) -> str:
        """Whole or not at all, as object stores are; its etag. `new`: 412 where there is such an object already."""
        headers = {"content-type": "application/json", "content-length": str(len(content))}
        if new:
            headers["if-none-match"] = "*"
        return self._etag(self._connection.call("PUT", self._target(name), content, headers))

    def put_file(self, name: str, file: IO[bytes], size: int, mtime: float, md5: str) -> str:
        """Streams a file of a known size and digest, which the store verifies; its etag."""
        headers = {"content-type": "application/octet-stream", "content-length": str(size), "content-md5": md5}
        headers[_MTIME] = repr(mtime)
        return self._etag(self._connection.call("PUT", self._target(name), file, headers))

    def get(self, name: str) -> bytes | None:
        """The content, None where there is no such object."""
        try:
            return self._connection.call("GET", self._target(name)).content
        except StoreError as error:
            if error.status == 404:
                return None
            raise

    def get_file(self, name: str, path: str) -> str:
        """Writes an object beside `path` and then moves it there, with the time it had; its etag."""
        draft = f"{path}.trainyard-new"
        try:
            with open(draft, "wb") as file:
                answer = self._connection.call("GET", self._target(name), into=file)
            mtime = answer.headers.get(_MTIME)
            if mtime:
                # Somebody else may have put the object, with another idea of a time.
                with suppress(ValueError, OverflowError):
                    os.utime(draft, (float(mtime), float(mtime)))
            os.replace(draft, path)
        finally:
            if os.path.exists(draft):
                os.remove(draft)
        return self._etag(answer)

    def remove(self, name: str) -> None:
        """Gone, whether or not it was there."""
        try:
            self._connection.call("DELETE", self._target(name))
        except StoreError as error:
            if error.status != 404:
                raise

    def _target(self, name: str) -> str:
        return f"{self._base}/{quote(self._prefix + name)}"

    @staticmethod
    def _etag(answer: StoreAnswer) -> str:
        headers: Mapping[str, str] = answer.headers
        return headers.get("etag", "")
