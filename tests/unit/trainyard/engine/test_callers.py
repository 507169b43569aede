# SPDX-License-Identifier: Apache-2.0
"""Lookup of the account that opened a connection. For the servers see tests/flows/test_other_accounts.py."""

import os
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import grpc
import psutil
import pytest

from tests.support.other_account import STRANGER, needs_root, strangers_port
from trainyard.engine import callers
from trainyard.engine.callers import (
    LOOPBACK,
    NOWHERE,
    WAYS,
    End,
    Lookup,
    LoopbackServer,
    OwnAccountOnly,
    find_caller_by_netlink,
    find_caller_in_proc,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says who opened a socket")
EVERY_WAY = pytest.mark.parametrize("look_up", [find_caller_by_netlink, find_caller_in_proc])


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server((LOOPBACK, 0)) as listener:
        listener.settimeout(60)
        yield listener


def _connect(server: socket.socket, family: int = socket.AF_INET) -> socket.socket:
    client = socket.socket(family)
    client.connect((LOOPBACK if family == socket.AF_INET else f"::ffff:{LOOPBACK}", server.getsockname()[1]))
    return client


def _own_end(client: socket.socket) -> End:
    return LOOPBACK, client.getsockname()[1]


@EVERY_WAY
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6], ids=["IPv4", "IPv4 through an IPv6 socket"])
def test_a_connection_belongs_to_the_account_that_opened_it(
    server: socket.socket, look_up: Lookup, family: int
) -> None:
    with _connect(server, family) as client:
        assert look_up(_own_end(client), server.getsockname()) == os.geteuid()


@EVERY_WAY
@needs_root
@pytest.mark.parametrize("target", [LOOPBACK, f"::ffff:{LOOPBACK}"])
def test_a_connection_of_another_account_is_not_ours(server: socket.socket, look_up: Lookup, target: str) -> None:
    with strangers_port(server.getsockname()[1], target) as port, socket.create_connection((LOOPBACK, port)):
        accepted, peer = server.accept()
        with accepted:
            assert look_up(peer, server.getsockname()) == STRANGER


@EVERY_WAY
def test_a_closed_connection_belongs_to_no_account(server: socket.socket, look_up: Lookup) -> None:
    """The kernel attributes a closed socket to root. A caller that hangs up early must not count as root."""
    client = _connect(server)
    own = _own_end(client)
    client.sendall(b"a request")
    client.close()
    assert look_up(own, server.getsockname()) is None


@EVERY_WAY
def test_a_listener_on_the_callers_port_is_not_the_caller(server: socket.socket, look_up: Lookup) -> None:
    """The kernel's exact look-up ends with a listener if it finds no connection."""
    with socket.create_server((LOOPBACK, 0)) as other:
        assert look_up(other.getsockname(), server.getsockname()) is None
        assert look_up(other.getsockname(), NOWHERE) == os.geteuid()


@pytest.mark.parametrize(
    ("peer", "end"),
    [
        ("ipv4:127.0.0.1:4711", ("127.0.0.1", 4711)),
        ("ipv4:127.0.0.2:1", ("127.0.0.2", 1)),
        ("ipv6:[::ffff:127.0.0.1]:4711", ("127.0.0.1", 4711)),
        ("ipv6:%5B::ffff:127.0.0.1%5D:4711", ("127.0.0.1", 4711)),
        ("ipv6:%5B::1%5D:4711", None),
        ("unix:/run/a.sock", None),
        ("unix:", None),
        ("", None),
        ("ipv4:127.0.0.1", None),
        ("vsock:2:4711", None),
    ],
)
def test_peers_in_grpcs_notation_are_parsed(peer: str, end: End | None) -> None:
    if end is None:
        with pytest.raises(ValueError, match=r"does not call from|not appear to be|invalid literal|not enough"):
            callers._parse_grpc_peer(peer)
    else:
        assert callers._parse_grpc_peer(peer) == end


class _Refused(Exception):  # noqa: N818
    pass


class _Context:
    def __init__(self, peer: str) -> None:
        self._peer = peer

    def peer(self) -> str:
        return self._peer

    def abort(self, code: grpc.StatusCode, details: str) -> None:
        raise _Refused(code, details)


def _unavailable(own: End, other: End) -> int | None:
    raise OSError("no such thing here")


def _asked(guard: OwnAccountOnly, peer: str) -> str:
    handler = grpc.unary_unary_rpc_method_handler(lambda request, context: "answered")
    guarded: Any = guard.intercept_service(lambda details: handler, SimpleNamespace(method="/any"))
    said: str = guarded.unary_unary(b"", _Context(peer))
    return said


@pytest.mark.parametrize(
    ("ways", "way"),
    [
        ((_unavailable, find_caller_in_proc), find_caller_in_proc),
        ((lambda own, other: None, find_caller_in_proc), find_caller_in_proc),
        ((lambda own, other: STRANGER, find_caller_in_proc), find_caller_in_proc),
        ((_unavailable, _unavailable), None),
        ((), None),
    ],
)
def test_a_lookup_that_does_not_find_the_server_itself_is_not_used(
    server: socket.socket, monkeypatch: pytest.MonkeyPatch, ways: tuple[Lookup, ...], way: Lookup | None
) -> None:
    """On macOS, or if the tables are empty, no caller can be looked up, and all are answered (docs/trust.md)."""
    monkeypatch.setattr(callers, "WAYS", ways)
    guard = OwnAccountOnly()
    guard.listens_on(server.getsockname()[1])
    assert guard.look_up is way
    if way is None:
        assert _asked(guard, "ipv4:127.0.0.1:1") == "answered"


@pytest.mark.parametrize("fails", [_unavailable, lambda own, other: None, lambda own, other: os.geteuid() + 1])
def test_a_caller_that_cannot_be_found_is_refused(
    server: socket.socket, fails: Callable[[End, End], int | None]
) -> None:
    guard = OwnAccountOnly()
    guard.listens_on(server.getsockname()[1])
    with _connect(server) as client:
        peer = f"ipv4:{LOOPBACK}:{client.getsockname()[1]}"
        assert _asked(guard, peer) == "answered"
        guard.look_up = fails
        with pytest.raises(_Refused, match="PERMISSION_DENIED"):
            _asked(guard, peer)


def test_a_server_listens_on_loopback_for_every_address() -> None:
    server = LoopbackServer(ThreadPoolExecutor(1))
    port = server.add_insecure_port("0.0.0.0:0")
    server.start()
    try:
        assert server.knows_callers
        listening = {place.laddr.ip for place in psutil.Process().net_connections("tcp") if place.laddr.port == port}
        assert listening <= {LOOPBACK, f"::ffff:{LOOPBACK}"}
        # gRPC listens by a socket for IPv6.
        assert [way((LOOPBACK, port), NOWHERE) for way in WAYS] == [os.geteuid()] * 2
    finally:
        server.stop(0).wait()
