# SPDX-License-Identifier: Apache-2.0
"""gRPC servers that answer only the account that they run as.

Loopback does not protect a server: every account of a machine can connect to every port on it. Whoever can call a
language host or a provider can run code and make resources as the person who typed `up`. The engine sends no password
that a server could check. But Linux knows which account opened each socket, so the server asks it about every caller.
"""

import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import grpc

LOOPBACK = "127.0.0.1"
# An address and a port. NOWHERE is the remote end of a socket that only listens.
End = tuple[str, int]
NOWHERE: End = ("0.0.0.0", 0)
# Returns the account that opened the socket with this local and this remote end. None if no process has it open.
Lookup = Callable[[End, End], int | None]

# linux/sock_diag.h and linux/inet_diag.h
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_NLMSG_ERROR = 2
_ENDS = struct.Struct("!HH16s16s")
_ANY_COOKIE = b"\xff" * 8
_SECONDS = 1.0

# The original: a program may replace `grpc.server` by LoopbackServer.
_grpc_server = grpc.server

_MAPPED = bytes(10) + b"\xff\xff"
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
# The kernel returns the table in parts. While other sockets open and close, one reading may miss a line.
_READINGS = 3


class LoopbackServer:
    """A `grpc.Server` that always listens on loopback, whatever address it is given. It can replace `grpc.server`."""

    def __init__(self, pool: Executor, options: Sequence[tuple[str, Any]] = ()) -> None:
        self._callers = OwnAccountOnly()
        self._server: Any = _grpc_server(pool, interceptors=(self._callers,), options=options)

    def add_insecure_port(self, address: str = f"{LOOPBACK}:0") -> int:
        port: int = self._server.add_insecure_port(f"{LOOPBACK}:{address.rpartition(':')[2]}")
        self._callers.listens_on(port)
        return port

    @property
    def knows_callers(self) -> bool:
        """False where the system does not say who calls (macOS, Windows). The server then answers everybody."""
        return self._callers.look_up is not None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)


class OwnAccountOnly(grpc.ServerInterceptor):  # type: ignore[misc,unused-ignore]
    """Refuses calls from sockets that another account opened.

    Root counts as another account: an engine of root never calls plugins of other accounts, and the kernel also reports
    0 for sockets that it cannot attribute. Each call is looked up, not each connection: a result must not be cached,
    because another account may get the same port next.
    """

    def __init__(self) -> None:
        self.look_up: Lookup | None = None
        self._own: End = NOWHERE

    def listens_on(self, port: int) -> None:
        """Chooses the lookup that works here: it must find this server's own socket. If none does, no caller can be
        looked up."""
        self._own = (LOOPBACK, port)
        self.look_up = next((way for way in WAYS if _finds_listener(way, self._own)), None)

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        handler = continuation(details)
        return handler and _guard_handler(handler, self._require_own)

    def _require_own(self, context: grpc.ServicerContext) -> None:
        if self.look_up is None:
            return
        try:
            caller = self.look_up(_parse_grpc_peer(context.peer()), self._own)
        except (OSError, ValueError):
            # A caller that cannot be found, although lookups work here, may be hiding: refuse it.
            caller = None
        if caller != os.geteuid():
            who = "is unknown: it has hung up, or hides" if caller is None else f"is {caller}"
            context.abort(
                grpc.StatusCode.PERMISSION_DENIED,
                f"only the user id {os.geteuid()} of this machine may call this server; the caller's user id {who}",
            )


def find_caller_by_netlink(own: End, other: End) -> int | None:
    """Asks the kernel for this one socket. The time does not depend on how many sockets there are."""
    packed = (_pack_address(own), _pack_address(other))
    question = struct.pack("=BBBxI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0xFFFFFFFF)
    question += _ENDS.pack(own[1], other[1], *packed) + struct.pack("=I", 0) + _ANY_COOKIE
    header = struct.pack("=IHHII", 16 + len(question), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG) as netlink:
        netlink.settimeout(_SECONDS)
        netlink.sendall(header + question)
        answer = netlink.recv(4096)
    _, kind, *_ = struct.unpack_from("=IHHII", answer)
    if kind == _NLMSG_ERROR:
        return None
    # If no socket has both ends, the kernel answers with one that listens on the port: compare them.
    ports_and_addresses = _ENDS.unpack_from(answer, 20)
    if (
        ports_and_addresses[:2] != (own[1], other[1])
        or tuple(map(_unmapped_address, ports_and_addresses[2:])) != packed
    ):
        return None
    uid, inode = struct.unpack_from("=II", answer, 80)
    return _owner_of_socket(uid, inode)


def find_caller_in_proc(own: End, other: End) -> int | None:
    """Looks for the socket in the tables of all sockets, where there is no netlink (gVisor, kernels without it)."""
    for _ in range(_READINGS):
        for table, width in zip(_TABLES, (4, 16), strict=True):
            wanted = f" {_in_table(own, width)} {_in_table(other, width)} "
            for line in table.read_text().splitlines() if table.exists() else ():
                if wanted in line:
                    fields = line.split()
                    return _owner_of_socket(int(fields[7]), int(fields[9]))
    return None


WAYS: tuple[Lookup, ...] = (find_caller_by_netlink, find_caller_in_proc) if sys.platform == "linux" else ()


def _owner_of_socket(uid: int, inode: int) -> int | None:
    """The account that has the socket open. A closed socket has no inode, and often counts as root's."""
    return uid if inode else None


def _finds_listener(way: Lookup, listener: End) -> bool:
    try:
        return way(listener, NOWHERE) == os.geteuid()
    except OSError:
        return False


def _parse_grpc_peer(peer: str) -> End:
    """Address and port of a peer in gRPC's notation: `ipv4:127.0.0.1:4711`, `ipv6:%5B::ffff:127.0.0.1%5D:4711`."""
    family, _, rest = unquote(peer).partition(":")
    host, _, port = rest.rpartition(":")
    address = ipaddress.ip_address(host.strip("[]"))
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    if family not in ("ipv4", "ipv6") or address.version != 4:
        raise ValueError(f"{peer} does not call from {LOOPBACK}")
    return str(address), int(port)


def _pack_address(end: End) -> bytes:
    return socket.inet_aton(end[0]).ljust(16, b"\0")


def _unmapped_address(address: bytes) -> bytes:
    """The address without IPv6's prefix: an IPv6 socket writes IPv4 addresses as `::ffff:127.0.0.1`."""
    mapped = ipaddress.IPv6Address(address).ipv4_mapped
    return mapped.packed.ljust(16, b"\0") if mapped else address


def _in_table(end: End, width: int) -> str:
    """The end as /proc/net/tcp writes it: 32-bit words in this processor's byte order, in hexadecimal."""
    prefix = b"" if width == 4 else bytes(12) if end == NOWHERE else _MAPPED
    address = prefix + socket.inet_aton(end[0])
    words = struct.unpack(f"={width // 4}I", address)
    return f"{''.join(f'{word:08X}' for word in words)}:{end[1]:04X}"


_HANDLERS = {
    (False, False): ("unary_unary", grpc.unary_unary_rpc_method_handler),
    (False, True): ("unary_stream", grpc.unary_stream_rpc_method_handler),
    (True, False): ("stream_unary", grpc.stream_unary_rpc_method_handler),
    (True, True): ("stream_stream", grpc.stream_stream_rpc_method_handler),
}


def _guard_handler(handler: Any, require: Callable[[grpc.ServicerContext], None]) -> Any:
    """The same handler, which checks the caller before it does anything else."""
    kind, make = _HANDLERS[handler.request_streaming, handler.response_streaming]
    carry_out = getattr(handler, kind)

    def checked(request: Any, context: grpc.ServicerContext) -> Any:
        require(context)
        return carry_out(request, context)

    return make(checked, handler.request_deserializer, handler.response_serializer)
