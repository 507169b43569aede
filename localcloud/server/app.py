# SPDX-License-Identifier: Apache-2.0
"""The ASGI application: gives each request to one of the cloud's APIs, and handles the errors of all of them."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import os
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from localcloud.files import open_regular_file
from localcloud.server import connections, faults
from localcloud.server.api_errors import (
    INTERNAL_ERROR,
    ApiError,
    explain_cloud_failure,
    request_too_large,
    request_too_late,
)
from localcloud.server.cloud import MARKER_PATH, ServedCloud, answer_marker
from localcloud.server.connections import CLIENT_SECONDS, FOR_NODES
from localcloud.server.http import MAXIMUM_BODY, Body, FilePart, HttpApi, Reply, Request, Upload, whole_number

MAXIMUM_UPLOAD = 50 * 1024**3
_CHUNK = 256 * 1024
# A body that arrives more slowly than this, in bytes per second, is refused.
_SLOWEST = 4096
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
log = logging.getLogger("localcloud")


class Application:
    """The APIs of one cloud as an ASGI application."""

    def __init__(self, cloud: ServedCloud) -> None:
        self._cloud = cloud

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started = time.monotonic()
        path = scope["raw_path"].decode("latin-1")
        query = scope["query_string"].decode("latin-1")
        headers: dict[str, str] = {}
        repeated: set[str] = set()
        for raw, value in scope["headers"]:
            name = raw.decode("latin-1").lower()
            if name in headers:
                repeated.add(name)
            headers[name] = value.decode("latin-1")
        target = f"{path}?{query}" if query else path
        client = scope["client"][0] if scope["client"] else ""
        of_a_node = FOR_NODES in scope["state"]
        request = Request(
            scope["method"], target, path, MappingProxyType(headers), frozenset(repeated), of_a_node, client
        )
        request_id = "/".join(filter(None, (request.headers.get("opc-request-id", "")[:64], uuid.uuid4().hex.upper())))
        body = _ArrivingBody(request, receive)
        try:
            reply, summary = await self._reply(request, body)
        except faults.DroppedError:
            if scope["client"]:
                connections.drop_connection(tuple(scope["client"]))
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        log.info(
            "%s %s %s %.1fms %s",
            request.method,
            request.shown,
            reply.status,
            (time.monotonic() - started) * 1000,
            summary,
        )
        payload = b"" if reply.file else reply.payload()
        headers = {"opc-request-id": request_id, **({} if body.is_over else {"connection": "close"}), **reply.headers}
        if payload:
            headers.setdefault("content-type", "application/json")
        length = reply.file.length if reply.file else len(payload)
        if reply.status not in (204, 304):
            headers.setdefault("content-length", str(length))
        encoded = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": reply.status, "headers": encoded})
        if reply.file and request.method != "HEAD":
            await _send_file(reply.file, send)
        await send(
            {
                "type": "http.response.body",
                "body": b"" if request.method == "HEAD" or reply.status in (204, 304) else payload,
            }
        )

    async def _reply(self, request: Request, body: Body) -> tuple[Reply, str]:
        """The reply, and its summary for the server's log."""
        if request.path == MARKER_PATH:
            return answer_marker(self._cloud, request), "marker"
        api = next(api for api in self._cloud.apis if api.takes(request))
        return await answer_request(api, request, body, self._cloud.home)


async def answer_request(api: HttpApi, request: Request, body: Body, home: Path) -> tuple[Reply, str]:
    """The reply of an API to a request, and its summary for the log. Turns all errors into refusals."""
    try:
        return await api.answer(request, body)
    except faults.DroppedError:
        raise
    except ApiError as refusal:
        error = refusal
    except Exception as problem:
        error = explain_cloud_failure(problem, home)
        if error.status == INTERNAL_ERROR:
            log.exception("%s %s", request.method, request.shown)
    return api.refused(request, error), f"{api.operation(request)} {error}".lstrip()


class _ArrivingBody:
    """The body of a request, which is received on demand, with a timeout."""

    def __init__(self, request: Request, receive: Receive) -> None:
        self._receive = receive
        self._announced = request.headers.get("content-length", "0")
        # Whether the whole body has been received.
        self.is_over = self._announced == "0" and "transfer-encoding" not in request.headers

    async def to_memory(self, most: int = MAXIMUM_BODY) -> bytes:
        parts = [part async for part in self._parts(most)]
        return b"".join(parts)

    async def to_file(self, path: Path) -> Upload:
        md5, sha256, size = hashlib.md5(usedforsecurity=False), hashlib.sha256(), 0
        try:
            with path.open("wb") as file:
                async for part in self._parts(MAXIMUM_UPLOAD):
                    size += len(part)
                    md5.update(part)
                    sha256.update(part)
                    file.write(part)
                file.flush()
                os.fdatasync(file.fileno())
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return Upload(path, size, base64.b64encode(md5.digest()).decode(), sha256.hexdigest())

    async def _parts(self, most: int) -> AsyncIterator[bytes]:
        if (whole_number(self._announced) or 0) > most:
            raise request_too_large(most)
        size, waited = 0, 0.0
        while not self.is_over:
            begun = time.monotonic()
            try:
                async with asyncio.timeout(CLIENT_SECONDS):
                    message = await self._receive()
            except TimeoutError:
                raise request_too_late(f"no data for {CLIENT_SECONDS:g} seconds") from None
            waited += time.monotonic() - begun
            if message["type"] == "http.disconnect":
                raise ApiError(
                    400, "CannotParseRequest", "the client closed the connection before the end of its request"
                )
            self.is_over = not message.get("more_body")
            size += len(message.get("body", b""))
            if size > most:
                raise request_too_large(most)
            if waited > CLIENT_SECONDS + size / _SLOWEST:
                raise request_too_late(f"it is slower than {_SLOWEST} bytes a second")
            if message.get("body"):
                yield message["body"]


async def _send_file(part: FilePart, send: Send) -> None:
    with open_regular_file(part.path) as file:
        file.seek(part.start)
        left = part.length
        while left and (chunk := file.read(min(_CHUNK, left))):
            left -= len(chunk)
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
