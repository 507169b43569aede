# SPDX-License-Identifier: Apache-2.0
"""Tests whether this node reaches ports of other nodes, while it listens on its own ones for theirs.

The kernels decide: a port is open if it accepts a connection, or refuses one because nothing listens there yet. So a
node whose processes are starved does not look closed. What listens here greets with the name of the run and its rank,
so that the answer of another run is noticed.

Both ends close with a reset. A connection that is closed in any other way would leave a state behind in which a
framework cannot bind the port.
"""

from __future__ import annotations

import errno
import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

# How many connections are attempted at a time. A process may have about a thousand open files.
_AT_A_TIME = 256
_BACKLOG = 1024
_AGAIN_SECONDS = 0.5
# How long the greeting of a port that accepted a connection is waited for. Nothing depends on it if it never comes.
_GREETING_SECONDS = 1.0
_LONGEST_GREETING = 200
_HELLO = b"trainyard "
# The type of service of these connections (CS1, of the least importance). The local cloud knows them by it: a port rule
# is not used because it was tested.
_TEST_MARK = 0x20
_RESET = struct.pack("ii", 1, 0)
_LISTENING = "0A"
_REFUSED = frozenset({errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED})


class PortOfPeer(NamedTuple):
    """A port that this node connects to."""

    label: str
    rank: int
    port: int
    address: str


class PortTests:
    """The sockets of one node's test. `pending`: what has not answered yet. `strangers`: who answered in place of the
    node."""

    def __init__(self, run: str, rank: int, address: str, targets: Iterable[PortOfPeer]) -> None:
        self.pending: set[PortOfPeer] = set(targets)
        self.strangers: dict[PortOfPeer, str] = {}
        self._run, self._rank, self._address = run, rank, address
        self._next: deque[PortOfPeer] = deque(sorted(self.pending))
        self._again_at = 0.0
        self._connecting = 0
        # Sockets that a greeting is expected from, and until when.
        self._expecting: dict[socket.socket, float] = {}
        self._selector = selectors.DefaultSelector()

    def listen(self, port: int) -> bool:
        """Listens on a port of this node. Returns False if another program does."""
        server = socket.socket(_family_of(self._address))
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((self._address, port))
            server.listen(_BACKLOG)
        except OSError as error:
            server.close()
            # One of our own connections may have this port, where the kernel's whole range is the framework's.
            return not (error.errno == errno.EADDRINUSE and is_listened_on(port))
        server.setblocking(False)
        self._selector.register(server, selectors.EVENT_READ, lambda: self._accept(server))
        return True

    def leave_out(self, ranks: Collection[int]) -> None:
        """Connects to none of these nodes. For the time before the first turn."""
        self.pending = {target for target in self.pending if target.rank not in ranks}
        self._next = deque(sorted(self.pending))

    @property
    def greeted(self) -> bool:
        """Whether no greeting is expected any more."""
        return not self._expecting

    def turn(self, seconds: float) -> None:
        """Deals with everything that happens within some seconds."""
        now = time.monotonic()
        while self._next and self._connecting < _AT_A_TIME and now >= self._again_at:
            self._connect(self._next.popleft())
        for key, _ in self._selector.select(seconds):
            if key.fileobj in self._selector.get_map():
                act: Callable[[], None] = key.data
                act()
        now = time.monotonic()
        for late in [peer for peer, until in self._expecting.items() if now > until]:
            self._end(late)

    def close(self) -> None:
        """Closes all sockets, so that the framework can bind their ports."""
        for key in list(self._selector.get_map().values()):
            _reset(key.fileobj)  # type: ignore[arg-type]  # it registers sockets only
        self._selector.close()

    def _accept(self, server: socket.socket) -> None:
        with suppress(OSError):
            peer, _ = server.accept()
            peer.setblocking(False)
            # It stays open until the other end has read the greeting: a reset could overtake it.
            self._selector.register(peer, selectors.EVENT_READ, lambda: self._end(peer))
            peer.send(_greeting(self._run, self._rank))

    def _connect(self, target: PortOfPeer) -> None:
        peer = socket.socket(_family_of(target.address))
        if peer.family == socket.AF_INET:
            peer.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, _TEST_MARK)
        peer.setblocking(False)
        self._connecting += 1
        code = peer.connect_ex((target.address, target.port))
        if code in (0, errno.EINPROGRESS):
            self._selector.register(peer, selectors.EVENT_WRITE, lambda: self._connected(peer, target))
        else:
            self._answered(peer, target, code)

    def _connected(self, peer: socket.socket, target: PortOfPeer) -> None:
        self._selector.unregister(peer)
        self._answered(peer, target, peer.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))

    def _answered(self, peer: socket.socket, target: PortOfPeer, code: int) -> None:
        self._connecting -= 1
        if code == 0:
            self.pending.discard(target)
            self._expecting[peer] = time.monotonic() + _GREETING_SECONDS
            self._selector.register(peer, selectors.EVENT_READ, lambda: self._hear(peer, target))
            return
        _reset(peer)
        if code in _REFUSED:
            self.pending.discard(target)
        else:
            # No answer, or no way there. What is attempted again keeps counting as unanswered.
            self._next.append(target)
            self._again_at = time.monotonic() + _AGAIN_SECONDS

    def _hear(self, peer: socket.socket, target: PortOfPeer) -> None:
        heard = b""
        with suppress(OSError):
            heard = peer.recv(_LONGEST_GREETING)
        if heard.startswith(_HELLO) and heard != _greeting(self._run, target.rank):
            self.strangers[target] = heard[len(_HELLO) :].decode(errors="replace").strip()
        self._end(peer)

    def _end(self, peer: socket.socket) -> None:
        self._expecting.pop(peer, None)
        self._selector.unregister(peer)
        _reset(peer)


def is_listened_on(port: int, proc: Path = Path("/proc/net")) -> bool:
    """Whether a program of this network namespace listens on the port."""
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (proc / table).read_text("ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    return True
    return False


def _greeting(run: str, rank: int) -> bytes:
    return _HELLO + f"{run} {rank}\n".encode()


def _family_of(address: str) -> int:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _reset(peer: socket.socket) -> None:
    with suppress(OSError):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    peer.close()
