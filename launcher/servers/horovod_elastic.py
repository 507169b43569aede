# SPDX-License-Identifier: Apache-2.0
"""`horovod_elastic.py ADDRESS PORT NODES PROCESSES LEAST`: Horovod's elastic rendezvous, for workers that others start.

Horovod's own driver starts workers by SSH. Here each node's launcher starts its own workers (horovod_join.py). A worker
counts as present while its connection is open: if it or its launcher dies, the kernel closes that. Workers see
Horovod's elastic rendezvous, because Horovod's own handler serves them. Like Horovod's, it authenticates nobody.

Run by the image's Python, which has Horovod; the launcher itself imports nothing of it.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Tuple

JOIN = "join"
# How long to wait for late nodes at the start, after the last one that arrived. Later ones join the others.
_LATE_SECONDS = 60.0
# Horovod distinguishes notifications by whole seconds, and loses those that arrive while workers meet again.
_TELL_AGAIN_SECONDS = 5.0
_TURN = 0.2
# A machine that vanishes closes no connection. TCP probes it: after which idle seconds, how often, how many times.
_KEEP_ALIVE = {socket.TCP_KEEPIDLE: 15, socket.TCP_KEEPINTVL: 5, socket.TCP_KEEPCNT: 3}

Slot = Tuple[str, int]


def node_of_host(host: str) -> int:
    """The node of a host name. Horovod's hosts are lives of nodes: `2.0`, and `2.1` after node 2 has started again."""
    return int(host.partition(".")[0])


@dataclass
class World:
    """The processes that train together. The first world has all `nodes`, or at least `least` if others are late.

    When the processes meet again, a new world begins without those that have gone, and with newcomers. `ranks` numbers
    the processes; `begun` is called with each new world.

    The first process of the first node is rank 0. It tells the others of newcomers, and from which state they resume.
    This server runs on the same node, so without that node there is no world.
    """

    nodes: int
    processes: int
    least: int
    ranks: Callable[[Sequence[str], int], Sequence[Any]]
    begun: Callable[[Sequence[Any]], None]
    say: Callable[[str], None]
    late_seconds: float = _LATE_SECONDS
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _here: dict[str, set[int]] = field(default_factory=dict)
    _left: set[str] = field(default_factory=set)
    _members: list[str] = field(default_factory=list)
    _ready: set[Slot] = field(default_factory=set)
    _slots: dict[Slot, Any] = field(default_factory=dict)
    _came: float = 0.0
    _round: int = 0
    _short: tuple[int, int] = (-1, 0)

    def come(self, host: str, local: int) -> bool:
        """A process has connected. Returns False if its node's life is over already."""
        with self._changed:
            if host in self._left:
                return False
            self._here.setdefault(host, set()).add(local)
            self._left |= {life for life in self._here if node_of_host(life) == node_of_host(host) and life != host}
            self._came = time.monotonic()
            self._settle()
            return True

    def leave(self, host: str) -> None:
        """A process has gone. That ends its node's life: the launcher ends the node's other processes."""
        with self._changed:
            self._left.add(host)
            self._here.pop(host, None)
            self._settle()
            self._changed.notify_all()

    def assigned(self, host: str, local: int, closed: Callable[[], bool]) -> Any:
        """Waits until a process is let in, and returns its slot; None if it has gone."""
        with self._changed:
            while (host, local) not in self._slots:
                if host in self._left or closed():
                    return None
                self._changed.wait(_TURN)
            return self._slots[host, local]

    def ready(self, host: str, local: int) -> None:
        """A process wants to meet the others again. Waits until all remaining processes want to."""
        with self._changed:
            before = self._round
            self._ready.add((host, local))
            self._settle()
            self._changed.wait_for(lambda: self._round != before or host in self._left)

    def slot(self, host: str, local: int) -> Any:
        """The slot of a process; None if it is not in the world any more."""
        with self._changed:
            return None if host in self._left else self._slots.get((host, local))

    def tick(self) -> bool:
        """Called regularly. Returns True while newcomers wait, so that the world has to be notified."""
        with self._changed:
            self._settle()
            return bool(self._members and self._coming()) and not self._ready and not self._left & set(self._members)

    def _coming(self) -> list[str]:
        """Newcomers whose processes have all connected, in the order of nodes."""
        all_there = (host for host, found in self._here.items() if len(found) == self.processes)
        return sorted((host for host in all_there if host not in self._members), key=node_of_host)

    def _settle(self) -> None:
        """Begins a new world if all its processes are there."""
        staying, coming = [host for host in self._members if host not in self._left], self._coming()
        if self._members and self._members[0] in self._left:
            return  # the main node has gone: its launcher makes all nodes start again
        if any((host, local) not in self._ready for host in staying for local in range(self.processes)):
            return
        late = time.monotonic() - self._came > self.late_seconds
        if not staying and (not coming or node_of_host(coming[0]) != 0 or (len(coming) < self.nodes and not late)):
            return
        members = [*staying, *coming]
        if len(members) >= self.least:
            self._begin(members)
        elif self._short != (self._round, len(members)):
            self._short = self._round, len(members)
            self.say(f"{len(members)} of at least {self.least} nodes are there: waiting for others to come back")

    def _begin(self, members: list[str]) -> None:
        slots = self.ranks(members, self.processes)
        self.begun(slots)
        gone = [host for host in self._members if host not in members]
        self._members = members
        self._slots = {(slot.hostname, slot.local_rank): slot for slot in slots}
        self._ready.clear()
        self._round += 1
        nodes = ", ".join(str(node_of_host(host)) for host in members)
        without = f"; gone: {', '.join(str(node_of_host(host)) for host in gone)}" if gone else ""
        self.say(
            f"Horovod's world {self._round}: {len(slots)} processes on nodes {nodes} in the order of ranks{without}"
        )
        self._changed.notify_all()


@dataclass
class Driver:
    """The driver that Horovod's elastic rendezvous handler calls."""

    world: World
    invalid: Any
    services: dict[Slot, tuple[Mapping[str, Any], bytes]] = field(default_factory=dict)

    def record_ready(self, host: str, local: int) -> None:
        """A worker wants to meet the others again."""
        self.world.ready(host, local)

    def get_slot_info(self, host: str, local: int) -> Any:
        """A worker's slot in the present world."""
        return self.world.slot(host, local) or self.invalid

    def register_worker_server(self, host: str, local: int, addresses: Mapping[str, Any], secret_key: bytes) -> None:
        """Notes the port at which a worker takes notifications. Only rank 0 gets them. It is on this node, so no port
        has to be open."""
        self.services[host, local] = addresses, secret_key

    def tell(self) -> None:
        """Notifies rank 0 that a node wants to join: all meet again at the next commit."""
        from horovod.runner.elastic.worker import HostUpdateResult, WorkerNotificationClient  # type: ignore[import-not-found,unused-ignore]

        main = next((slot for slot in self.services if node_of_host(slot[0]) == 0 and slot[1] == 0), None)
        if main is None:
            return  # it has not reached `hvd.elastic.run` yet
        try:
            client = WorkerNotificationClient(*self.services[main], 0)
            client.notify_hosts_updated(int(time.time()), HostUpdateResult.added)
        except Exception as error:  # any error is retried
            self.world.say(f"rank 0 could not be told that a node wants to join, trying again: {error}")


def handler_for(driver: Driver) -> type[Any]:
    """Horovod's own handler, extended so that workers can join."""
    from horovod.runner.elastic.rendezvous import create_rendezvous_handler  # type: ignore[import-not-found,unused-ignore]

    class Handler(create_rendezvous_handler(driver)):  # type: ignore[misc]
        def do_POST(self) -> None:  # noqa: N802  # as http.server names it
            _, scope, key = self.path.split("/")
            host, _, local = key.partition(":")
            if scope != JOIN or not driver.world.come(host, int(local)):
                self.send_status_code(410)
                return
            try:
                self.connection.settimeout(None)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                for option, value in _KEEP_ALIVE.items():
                    self.connection.setsockopt(socket.IPPROTO_TCP, option, value)
                slot = driver.world.assigned(host, int(local), lambda: _is_closed(self.connection))
                if slot is not None:
                    self.wfile.write(json.dumps(_slot_variables(slot)).encode() + b"\n")
                    while self.connection.recv(1):
                        pass
            except OSError:
                pass  # the worker has gone
            finally:
                driver.world.leave(host)

    return Handler


def _is_closed(line: socket.socket) -> bool:
    """Whether a connection is closed. Nothing is ever sent on it, so it is readable only at its end."""
    return bool(select.select([line], [], [], 0)[0])


def _slot_variables(slot: Any) -> dict[str, str]:
    names = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")
    return {f"HOROVOD_{name.upper()}": str(getattr(slot, name)) for name in names}


def main(arguments: list[str]) -> int:
    """Serves until it is killed."""
    from horovod.runner.common.util.hosts import INVALID_SLOT_INFO, HostInfo, get_host_assignments  # type: ignore[import-not-found,unused-ignore]
    from horovod.runner.http.http_server import RendezvousHTTPServer  # type: ignore[import-not-found,unused-ignore]

    class Server(RendezvousHTTPServer):  # type: ignore[misc,unused-ignore]
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            if not isinstance(sys.exc_info()[1], ConnectionError):  # a worker that was killed while it asked
                super().handle_error(request, client_address)

    def ranks(members: Sequence[str], processes: int) -> Sequence[Any]:
        slots: Sequence[Any] = get_host_assignments([HostInfo(host, processes) for host in members], 1)
        return slots

    address, port, nodes, processes, least = arguments
    world = World(int(nodes), int(processes), int(least), ranks, lambda slots: server.init(slots), _print_line)
    driver = Driver(world, INVALID_SLOT_INFO)
    server = Server((address, int(port)), handler_for(driver), 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    _print_line(f"Horovod's elastic rendezvous serves {least} to {nodes} nodes at {address}:{port}")
    told_at = 0.0
    while True:
        if world.tick() and time.monotonic() - told_at > _TELL_AGAIN_SECONDS:
            driver.tell()
            told_at = time.monotonic()
        time.sleep(_TURN)


def _print_line(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
