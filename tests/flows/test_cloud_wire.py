# SPDX-License-Identifier: Apache-2.0
"""Requests that no client of OCI would send."""

import os
import socket
from email.utils import formatdate
from urllib.parse import urlsplit

import pytest

from localcloud.control import Cloud
from tests.support.cloud_fixture import Clients
from tests.support.signing import Signing
from tests.support.waiting import LONGEST_SECONDS, eventually

MEGABYTE = 1024 * 1024


def _exchange(cloud: Cloud, request: bytes) -> bytes:
    address = urlsplit(cloud.endpoint)
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=LONGEST_SECONDS) as connection:
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # The server closed the connection early: a reset, a broken pipe, or no connection.
        answer = b""
        try:
            while chunk := connection.recv(65536):
                answer += chunk
        except ConnectionError:
            pass  # Its response may be lost with the closed connection.
        return answer


@pytest.mark.parametrize(
    "request_line",
    [
        b"nonsense", b"GET", b"GET / HTTP/9.9", b"GET /n HTTP/1.1", b"G\x00T /n HTTP/1.1", b"OPTIONS * HTTP/1.1",
        b"GET http://elsewhere/n HTTP/1.1", b"GET /%00%ff%zz HTTP/1.1", b"GET /n/../../../etc/passwd HTTP/1.1",
        b"GET //n HTTP/1.1", b"CONNECT a:1 HTTP/1.1", b"GET /n?" + b"a=b&" * 5000 + b" HTTP/1.1",
    ],
    ids=range(12),
)  # fmt: skip
def test_a_malformed_request_line_is_refused(shared_cloud: Cloud, request_line: bytes) -> None:
    answer = _exchange(shared_cloud, request_line + b"\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert not answer or answer.split(b" ", 2)[1] in (b"400", b"401", b"404", b"431"), answer[:200]


@pytest.mark.parametrize(
    "headers",
    [
        b"Authorization: Signature version=1",
        b"Authorization: " + os.urandom(64).hex().encode() * 100,
        b"Content-Length: -1",
        b"Content-Length: 5\r\nContent-Length: 6",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5",
        b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"Content-Length: 100\r\n\r\n{}",
        b"X: " + b"a" * MEGABYTE,
        b": empty",
        b"Date: never",
        b"Range: bytes=9-1",
        b"Upgrade: websocket\r\nConnection: upgrade",
    ],
    ids=range(12),
)
def test_malformed_headers_are_refused(shared_cloud: Cloud, headers: bytes) -> None:
    answer = _exchange(shared_cloud, b"POST /20160918/vcns HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n\r\n")
    assert not answer or answer.split(b" ", 2)[1] in (b"400", b"401", b"413", b"431"), answer[:200]


def test_a_body_that_is_too_large_is_refused(shared_cloud: Cloud) -> None:
    signing = Signing(shared_cloud)
    body = b" " * (17 * MEGABYTE)
    headers = signing.headers("POST", "/20160918/vcns", body)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    answer = _exchange(shared_cloud, f"POST /20160918/vcns HTTP/1.1\r\n{lines}\r\n".encode() + body)
    assert not answer or b" 413 " in answer.splitlines()[0]


def test_an_interrupted_upload_leaves_nothing(shared_cloud: Cloud) -> None:
    signing = Signing(shared_cloud)
    target = "/n/trainyardlocal/b/none/o/x"
    headers = signing.headers("GET", target) | signing.headers("PUT", target, b"")
    headers["content-length"] = "1000"
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    _exchange(shared_cloud, f"PUT {target} HTTP/1.1\r\n{lines}\r\nonly this".encode())
    incoming = shared_cloud.home / "objects" / "incoming"
    eventually(lambda: list(incoming.iterdir()), lambda found: not found)


def test_a_slow_client_does_not_block_others(shared_cloud: Cloud) -> None:
    address = urlsplit(shared_cloud.endpoint)
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=LONGEST_SECONDS) as slow:
        slow.sendall(f"PUT /n HTTP/1.1\r\nHost: x\r\nDate: {formatdate(usegmt=True)}\r\nContent-Length: 9".encode())
        assert Clients(shared_cloud).storage.get_namespace().data == "trainyardlocal"
