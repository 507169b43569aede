# SPDX-License-Identifier: Apache-2.0
"""The local AWS in the process of the test: requests need no socket. Each is signed correctly, even if it is
malformed."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from localcloud.aws import account, sigv4
from localcloud.aws.cloud import AwsCloud
from localcloud.aws.machines import Machine, MachineCommand, MachineReports
from localcloud.oci.tenancy_store import FaultTable, StateStore
from localcloud.server.app import answer_request
from localcloud.server.faults import Faults
from localcloud.server.http import MAXIMUM_BODY, Reply, Request, Upload

HOST = "127.0.0.1:1"
REGION = account.REGION


@dataclass(frozen=True)
class Sender:
    """Who signs."""

    key: str
    secret: str
    token: str = ""


class _Body:
    def __init__(self, content: bytes) -> None:
        self._content = content

    async def to_memory(self, most: int = MAXIMUM_BODY) -> bytes:
        return self._content

    async def to_file(self, path: Path) -> Upload:
        raise NotImplementedError("no call of AWS streams its body into a file")


class NoMachines:
    """`localcloud.aws.machines.Machines` without hosts. Instances count as running, and nothing runs on them. They
    accept no commands, because their agents never report that they are ready."""

    def __init__(self, reports: MachineReports) -> None:
        self._reports = reports

    def later(self, step: Callable[[], None]) -> None:
        step()

    def started(self, machine: Machine) -> None:
        self._reports.running(machine.id)

    def stopped(self, instance: str) -> None: ...

    def terminated(self, instance: str) -> None: ...

    def rebooted(self, machine: Machine) -> None: ...

    def send(self, command: MachineCommand) -> None:
        self._reports.command_ended(command.id, command.instance, 1, "", "nothing runs here")

    def cancel(self, command: str, instance: str) -> None: ...

    def network_changed(self) -> None: ...


class AwsInside:
    """One local AWS. All of a process share moto's state, so use only one at a time."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.loop = asyncio.new_event_loop()
        self._clients: dict[tuple[Sender, str], Any] = {}
        self._faults = StateStore(home / "faults")
        self.cloud = AwsCloud(home, f"http://{HOST}", Faults(FaultTable(self._faults)))
        self.cloud.hosts = NoMachines(self.cloud)
        keys = account.load_keys(home)
        self.deployer, self.user = (Sender(keys[name].id, keys[name].secret) for name in ("deployer", "user"))
        self.loop.run_until_complete(self._recover())

    async def _recover(self) -> None:
        self.cloud.recover()

    def close(self) -> None:
        self.loop.run_until_complete(self.cloud.close())
        self._faults.close()
        self.loop.close()

    def answer(self, request: Request, body: bytes) -> Reply:
        """Sends an unchanged request, and returns the response."""
        return self.loop.run_until_complete(answer_request(self.cloud, request, _Body(body), self.home))[0]

    def send(
        self, sender: Sender, service: str, method: str, target: str, headers: Mapping[str, str] | None = None,
        body: bytes = b"", region: str = REGION,
    ) -> Reply:  # fmt: skip
        """Signs a request, sends it, and returns the response."""
        return self.answer(signed(sender, service, method, target, headers or {}, body, region), body)

    def ask(self, sender: Sender, service: str, operation: str, **parameters: Any) -> Any:
        """Makes a call with botocore's own client."""
        from botocore import xform_name

        return getattr(self.client(sender, service), xform_name(operation))(**parameters)

    def client(self, sender: Sender, service: str) -> Any:
        """Botocore's client, which calls this object and not the network."""
        if (sender, service) not in self._clients:
            self._clients[sender, service] = self._new_client(sender, service)
        return self._clients[sender, service]

    def _new_client(self, sender: Sender, service: str) -> Any:
        import botocore.session
        from botocore.awsrequest import AWSResponse
        from botocore.config import Config

        once = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
        client = botocore.session.Session().create_client(
            service, region_name=REGION, endpoint_url=f"http://{HOST}", config=once, aws_access_key_id=sender.key,
            aws_secret_access_key=sender.secret, aws_session_token=sender.token or None,
        )  # fmt: skip

        def exchange(request: Any, **_: Any) -> AWSResponse:
            body = _content(request.body)
            reply = self.answer(_as_request(request), body)
            return AWSResponse(request.url, reply.status, reply.headers, _Raw(reply.payload()))

        client.meta.events.register("before-send", exchange)
        return client


class _Raw:
    """The body of a response, in the form that botocore reads."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self._content

    def read(self, *_: Any) -> bytes:
        content, self._content = self._content, b""
        return content

    def close(self) -> None: ...


def _content(body: Any) -> bytes:
    if body is None:
        return b""
    if hasattr(body, "read"):
        return bytes(body.read())
    return body if isinstance(body, bytes) else str(body).encode()


def _as_request(request: Any) -> Request:
    parts = urlsplit(request.url)
    target = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    headers = {
        name.lower(): value.decode() if isinstance(value, bytes) else str(value)
        for name, value in request.headers.items()
    }
    return Request(request.method, target, parts.path or "/", {**headers, "host": parts.netloc})


def signed(
    sender: Sender, service: str, method: str, target: str, headers: Mapping[str, str], body: bytes,
    region: str = REGION,
) -> Request:  # fmt: skip
    """A request whose headers are all signed."""
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    every = {"host": HOST, "x-amz-date": moment, **({"x-amz-security-token": sender.token} if sender.token else {})}
    if service == "s3":
        every["x-amz-content-sha256"] = hashlib.sha256(body).hexdigest()
    request = Request(method, target, target.partition("?")[0], {**every, **headers})
    scope = sigv4.Scope(moment[:8], region, service)
    names = tuple(sorted(request.headers))
    parts = sigv4.SignedRequest(sender.key, scope, names, "", moment, sender.token)
    payload = sigv4.stated_payload(request, parts) or hashlib.sha256(body).hexdigest()
    credential = f"Credential={sender.key}/{scope.text}, SignedHeaders={';'.join(names)}"
    authorization = f"{sigv4.ALGORITHM} {credential}, Signature={_signature(sender, request, parts, payload)}"
    return replace(request, headers={**request.headers, "authorization": authorization})


def linked(sender: Sender, method: str, path: str, query: Mapping[str, str] | None = None) -> str:
    """The path and query of a presigned S3 request."""
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    scope = sigv4.Scope(moment[:8], REGION, "s3")
    named = {
        **(query or {}), "X-Amz-Algorithm": sigv4.ALGORITHM, "X-Amz-Credential": f"{sender.key}/{scope.text}",
        "X-Amz-Date": moment, "X-Amz-Expires": "600", "X-Amz-SignedHeaders": "host",
    }  # fmt: skip
    target = f"{path}?" + "&".join(f"{name}={quote(value, safe='')}" for name, value in named.items())
    request = Request(method, target, path, {"host": HOST})
    parts = sigv4.SignedRequest(sender.key, scope, ("host",), "", moment, "", presigned=True)
    return f"{target}&X-Amz-Signature={_signature(sender, request, parts, sigv4.UNSIGNED_PAYLOAD)}"


def through_link(method: str, target: str, headers: Mapping[str, str] | None = None) -> Request:
    """Sends a presigned request with further headers."""
    return Request(method, target, target.partition("?")[0], {"host": HOST, **(headers or {})})


def _signature(sender: Sender, request: Request, parts: sigv4.SignedRequest, payload: str) -> str:
    digest = hashlib.sha256(sigv4._canonical_request(request, parts, payload)).hexdigest()
    text = "\n".join((sigv4.ALGORITHM, parts.moment, parts.scope.text, digest))
    return hmac.new(sigv4.signing_key(sender.secret, parts.scope), text.encode(), hashlib.sha256).hexdigest()


@contextmanager
def aws_inside(home: Path) -> Iterator[AwsInside]:
    """One local AWS with a state of its own."""
    inside = AwsInside(home)
    try:
        yield inside
    finally:
        inside.close()
