# SPDX-License-Identifier: Apache-2.0
"""The ASGI application: bytes in, signature checked, dispatched, bytes out."""

from __future__ import annotations

import base64
import hashlib
import logging
import os
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from localcloud.api import connections, faults, marker, registry, sdk, signatures
from localcloud.api.dispatch import dispatch
from localcloud.api.errors import ApiError, not_authenticated, not_implemented, of_the_disk, too_large
from localcloud.api.http import FilePart, Reply, Request, Upload
from localcloud.api.operations import Call, Cloud, Operation
from localcloud.api.routing import Router
from localcloud.console import page

MAXIMUM_BODY = 16 * 1024 * 1024
MAXIMUM_UPLOAD = 50 * 1024**3
_CHUNK = 256 * 1024
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
log = logging.getLogger("localcloud")


class Application:
    """OCI's API of one cloud, as an ASGI application."""

    def __init__(self, cloud: Cloud, router: Router) -> None:
        self._cloud = cloud
        self._router = router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started = time.monotonic()
        request = _request(scope)
        request_id = "/".join(filter(None, (request.headers.get("opc-request-id", "")[:64], uuid.uuid4().hex.upper())))
        try:
            reply, told = await self._reply(request, receive)
        except faults.DroppedError:
            await _drop(scope, receive)
            return
        log.info(
            "%s %s %s %.1fms %s",
            request.method,
            request.target,
            reply.status,
            (time.monotonic() - started) * 1000,
            told,
        )
        await _send(reply, request.method, request_id, send)

    async def _reply(self, request: Request, receive: Receive) -> tuple[Reply, str]:
        """The reply, and what the server's own log says about it."""
        if request.path == marker.PATH:
            return Reply(200, marker.marker(self._cloud)), "marker"
        found = self._router.find(request.method, request.path)
        name = found[0].name if found else ""
        try:
            if page.is_console(request):
                return page.answer(self._cloud, request), "console"
            if registry.is_registry(request):
                return await registry.answer(self._cloud, request, partial(_receive_file, receive))
            call = await self._call(request, receive, found)
            return await self._answer(call), f"{name} by {call.principal.name}"
        except ApiError as error:
            return Reply(error.status, {"code": error.code, "message": error.message}), f"{name} {error}"
        except faults.DroppedError:
            raise
        except Exception as problem:
            if disk := of_the_disk(problem, self._cloud.home):
                return Reply(disk.status, {"code": disk.code, "message": disk.message}), f"{name} {disk}"
            log.exception("%s %s", request.method, request.target)
            message = "The local cloud failed; its log says where"
            return Reply(500, {"code": "InternalError", "message": message}), name

    async def _answer(self, call: Call) -> Reply:
        # The doors of our own stay open whatever was asked to go wrong.
        faulty = not call.operation.path.startswith(marker.PATH)
        try:
            if faulty:
                await faults.before(self._cloud.faults, call.operation.name)
            reply = dispatch(call)
            if reply.later:
                reply = await reply.later()
            if faulty:
                faults.after(self._cloud.faults, call.operation.name)
            return reply
        finally:
            if call.request.upload:  # a handler that keeps it has moved it
                call.request.upload.path.unlink(missing_ok=True)

    async def _call(self, request: Request, receive: Receive, found: tuple[Operation, dict[str, str]] | None) -> Call:
        streams = found is not None and found[0].streams
        key_id = signatures.verify(request.method, request.target, request.headers, self._find_key, streams)
        credential = self._cloud.credentials.find(key_id)
        if credential is None:
            raise not_authenticated("the key is not known here")
        if found is None:
            operation = sdk.operation_name(request.method, request.path)
            log.warning("not implemented: %s", operation)
            raise not_implemented(operation)
        whole = await self._with_body(request, receive, streams)
        return Call(self._cloud, found[0], whole, found[1], credential.principal)

    def _find_key(self, key_id: str) -> RSAPublicKey | None:
        credential = self._cloud.credentials.find(key_id)
        return credential.key if credential else None

    async def _with_body(self, request: Request, receive: Receive, streams: bool) -> Request:
        if streams:
            upload = await _receive_file(receive, self._cloud.objects / "incoming" / uuid.uuid4().hex)
            try:
                signatures.check_body(request.headers, bytes.fromhex(upload.sha256))
            except ApiError:
                upload.path.unlink()
                raise
            return Request(request.method, request.target, request.path, request.query, request.headers, upload=upload)
        body = await _receive_bytes(receive)
        if request.method not in signatures.METHODS_WITH_BODY:
            return request  # no signature covers a body here, so nobody has asked for what it says
        signatures.check_body(request.headers, hashlib.sha256(body).digest())
        return Request(request.method, request.target, request.path, request.query, request.headers, body)


def _request(scope: Scope) -> Request:
    path = scope["raw_path"].decode("latin-1")
    query = scope["query_string"].decode("latin-1")
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        headers[name.decode("latin-1").lower()] = value.decode("latin-1")
    pairs: Mapping[str, str] = dict(parse_qsl(query, keep_blank_values=True))
    return Request(scope["method"], f"{path}?{query}" if query else path, path, pairs, headers)


async def _receive_bytes(receive: Receive) -> bytes:
    parts, size = [], 0
    async for part in _parts(receive):
        size += len(part)
        if size > MAXIMUM_BODY:
            raise too_large(MAXIMUM_BODY)
        parts.append(part)
    return b"".join(parts)


async def _receive_file(receive: Receive, path: Path) -> Upload:
    md5, sha256, size = hashlib.md5(usedforsecurity=False), hashlib.sha256(), 0
    try:
        with path.open("wb") as file:
            async for part in _parts(receive):
                size += len(part)
                if size > MAXIMUM_UPLOAD:
                    raise too_large(MAXIMUM_UPLOAD)
                md5.update(part)
                sha256.update(part)
                file.write(part)
            file.flush()
            os.fdatasync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return Upload(path, size, base64.b64encode(md5.digest()).decode(), sha256.hexdigest())


async def _parts(receive: Receive) -> Any:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ApiError(400, "CannotParseRequest", "the client went away before the end of its request")
        if message.get("body"):
            yield message["body"]
        if not message.get("more_body"):
            return


async def _drop(scope: Scope, receive: Receive) -> None:
    if scope["client"]:
        connections.drop(tuple(scope["client"]))
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send(reply: Reply, method: str, request_id: str, send: Send) -> None:
    payload = b"" if reply.file else reply.payload()
    headers = {"opc-request-id": request_id, **reply.headers}
    if payload:
        headers.setdefault("content-type", "application/json")
    length = reply.file.length if reply.file else len(payload)
    if reply.status not in (204, 304):
        headers.setdefault("content-length", str(length))
    encoded = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": encoded})
    if reply.file and method != "HEAD":
        await _send_file(reply.file, send)
    await send(
        {"type": "http.response.body", "body": b"" if method == "HEAD" or reply.status in (204, 304) else payload}
    )


async def _send_file(part: FilePart, send: Send) -> None:
    with part.path.open("rb") as file:
        file.seek(part.start)
        left = part.length
        while left and (chunk := file.read(min(_CHUNK, left))):
            left -= len(chunk)
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
