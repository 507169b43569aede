# SPDX-License-Identifier: Apache-2.0
"""Tests before training starts what the run expects: connections between nodes, and what each node has.

All nodes test at the same time, after they have met. Each puts what it found into names of small objects on the board,
and waits for the others. So all of them know the same, and say the same sentence.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launcher import node_tests
from launcher.board_client import BoardClient, meeting_interval, watching_interval
from launcher.closed_ports import ClosedPorts, closed_sentence, node_name, pack_ranks, unpack_ranks
from launcher.devices import device_problem
from launcher.document import Launch
from launcher.errors import LaunchError, MissingError
from launcher.expects import OFF, WARN, Expects
from launcher.placeholders import Place
from launcher.port_tests import PortOfPeer, PortTests
from launcher.printing import LinePrinter
from launcher.readiness import StoppedError

# A port is closed if it has not answered for this long after its node said that it listens.
CLOSED_SECONDS = 10.0
# A node that has not said anything for this long has another launcher, or begins later: nobody waits for it.
_SILENT_SECONDS = 5.0
# A node that is still at it says that it listens.
_SAY_AFTER = 1.0
# How long a node that has finished waits for the others at most.
_OTHERS_SECONDS = 2 * CLOSED_SECONDS
_TURN = 0.02
# `left`: a node goes on although it has not heard of all others.
LISTENS, DONE, CLOSED, LEFT = "listens", "done", "closed", "left"


@dataclass
class Preflight:
    """This node's tests. `result` is for the node's status object."""

    launch: Launch
    expects: Expects
    say: LinePrinter
    board_client: BoardClient | None
    root: Path
    stopped: Callable[[], bool]
    result: dict[str, Any] = field(default_factory=dict, init=False)
    _tested: tuple[str, ...] = field(default=(), init=False)
    # A label, a port, and the ranks that this node could not reach there.
    _closed: list[str] = field(default_factory=list, init=False)
    # When each rank was first seen to test, by our own clock.
    _heard: dict[int, float] = field(default_factory=dict, init=False)

    def run(self, generation: int, place: Place) -> None:
        """Tests everything, unless it was tested with these addresses. LaunchError: training cannot work. MissingError:
        this node cannot train, and another start may bring another one."""
        if self.expects.preflight == OFF or place.addresses == self._tested or (generation and self.launch.elastic):
            return
        self._tested, began = place.addresses, time.monotonic()
        planned = self.expects.node_of_role(self.launch.role)
        own = [node_tests.folder_problem(self.root)]
        if planned.devices:
            own.append(device_problem(planned.kind, planned.devices, planned.device_gb))
        if planned.transport:
            own.append(self.launch.identity.transport_problem(planned.transport))
        warnings = list(node_tests.find_shortages(self.root, self._clock_ahead(), planned))
        sentence, tested, self._closed = "", 0, []
        client = self.board_client
        # Nodes that share an address would find each other's ports in use.
        apart = place.addresses.count(place.address) == 1
        if client is not None and client.watches and client.foreign_nodes is None and apart:
            targets = self._targets(place)
            tests = PortTests(_run_mark(self.launch), self.launch.rank, place.address, targets)
            try:
                own += self._listen(tests)
                if self.expects.preflight == WARN or not any(own):
                    tested = len(targets)
                    members = {rank for rank, address in enumerate(place.addresses) if address}
                    sentence = self._meet_others(client, tests, generation, members)
            finally:
                tests.close()
                client.interval = watching_interval(self.launch.nodes)
        elif client is not None and client.watches and client.foreign_nodes is None:
            client.report_test(generation, DONE)  # so that nobody waits for this node's tests
        problems = [f"{node_name(self.launch, self.launch.rank)}: {problem}" for problem in own if problem]
        findings = [*problems, *filter(None, [sentence])]
        self.result = {
            "seconds": round(time.monotonic() - began, 3), "connections": tested, "closed": self._closed,
            "findings": findings, "warnings": warnings,
        }  # fmt: skip
        for warning in warnings:
            self.say(f"preflight: {warning}")
        if not findings:
            return
        if self.expects.preflight == WARN:
            self.say(f"preflight: {' '.join(findings)} (training starts all the same, as the job's `preflight` says)")
        elif problems and self.launch.identity.may_start_elsewhere:
            raise MissingError(" ".join(findings))
        else:
            raise LaunchError(" ".join(findings))

    def _targets(self, place: Place) -> list[PortOfPeer]:
        """The ports of other nodes that this one connects to."""
        launch, found = self.launch, []
        for connection in self.expects.connections:
            if launch.role in connection.sources and connection.label in launch.ports:
                for rank in self._ranks_of(connection.targets):
                    address = place.addresses[rank]
                    if address and address != place.address:
                        ports = self._tested_ports(connection.label, rank)
                        found += [PortOfPeer(connection.label, rank, port, address) for port in ports]
        return found

    def _ranks_of(self, roles: tuple[str, ...]) -> list[int]:
        known = {role.name for role in self.launch.roles}
        return [rank for role in roles if role in known for rank in self.launch.ranks_of(role)]

    def _tested_ports(self, label: str, rank: int) -> list[int]:
        """All ports that the platform reserves. Of a range only the ends, because rules are ranges, and where the
        kernel's own range is the framework's, outgoing connections use the ports between."""
        try:
            numbers = self.launch.port_numbers(label, rank)
        except LaunchError:
            return []  # nobody listens there, as the platform says
        return list(numbers) if self.launch.ports[label].reserved else sorted({*numbers[:1], *numbers[-1:]})

    def _listen(self, tests: PortTests) -> list[str]:
        """Listens on the ports that others connect to. Returns what is wrong with them."""
        labels = {
            port: one.label
            for one in self.expects.connections
            if self.launch.role in one.targets and one.label in self.launch.ports
            for port in self._tested_ports(one.label, self.launch.rank)
        }
        return [
            f"TCP {port} ({label}) is in use by another program: end that, or give the job other `ports`"
            for port, label in labels.items()
            if not tests.listen(port)
        ]

    def _meet_others(self, client: BoardClient, tests: PortTests, generation: int, members: set[int]) -> str:
        """Tests until all has answered, or counts as closed. Then waits for the others, and returns the sentence about
        everything that is closed; empty if nothing is."""
        began, finished, said, left = time.monotonic(), 0.0, False, False
        self._heard = {}
        client.interval = meeting_interval(self.launch.nodes, 0.0)
        if self.launch.peers["from"] != "bucket":
            # The platform knew the addresses, so nodes may have gone on. Their frameworks then listen on these ports,
            # and must not be disturbed. Either they read that this node tests, or it reads that they have left.
            said = True
            client.report_test(generation, LISTENS)
            before = client.fresh(_SAY_AFTER).tests(generation)
            tests.leave_out({rank for rank, texts in before.items() if LEFT in texts})
        while True:
            if self.stopped():
                raise StoppedError
            client.check()
            tests.turn(_TURN)
            now, told = time.monotonic(), client.board.tests(generation)
            for rank in told:
                self._heard.setdefault(rank, now)
            if not said and now - began > _SAY_AFTER:
                said = True
                client.report_test(generation, LISTENS)
            if not finished:
                if tests.greeted and not any(self._may_answer(target, now, began) for target in tests.pending):
                    finished = now
                    self._post_closed(client, tests.pending, generation)
                    client.read_soon()
            elif now - finished > _OTHERS_SECONDS or not self._unfinished(client, generation, members, told, began):
                if left or members <= {self.launch.rank, *told}:
                    return self._sentence(tests, told)
                left = True
                client.report_test(generation, LEFT)
                client.fresh(_SAY_AFTER)

    def _may_answer(self, target: PortOfPeer, now: float, began: float) -> bool:
        heard = self._heard.get(target.rank)
        return now - began < _SILENT_SECONDS if heard is None else now - heard < CLOSED_SECONDS

    def _post_closed(self, client: BoardClient, pending: set[PortOfPeer], generation: int) -> None:
        closed: dict[tuple[str, int], list[int]] = {}
        for target in sorted(pending):
            if target.rank in self._heard:
                closed.setdefault((target.label, target.port), []).append(target.rank)
        for (label, port), ranks in closed.items():
            text = f"{label}/{port}/{pack_ranks(ranks)}"
            self._closed.append(text)
            client.report_test(generation, f"{CLOSED}/{text}")
        client.report_test(generation, DONE)

    def _unfinished(
        self, client: BoardClient, generation: int, members: set[int], told: Mapping[int, set[str]], began: float
    ) -> bool:
        """Whether a node that takes part has not finished its tests yet, as far as the board says. This node counts,
        too: what it has found has to be there."""
        ended = {event.rank for event in client.board.endings(generation)} | set(client.lost())
        silent = time.monotonic() - began > _SILENT_SECONDS
        return any(
            rank not in ended and DONE not in told.get(rank, ()) and not (silent and rank not in self._heard)
            for rank in {self.launch.rank, *members}
        )

    def _sentence(self, tests: PortTests, told: Mapping[int, set[str]]) -> str:
        closed: ClosedPorts = {}
        for source, texts in told.items():
            for text in texts:
                kind, _, rest = text.partition("/")
                parts = rest.split("/")
                if kind == CLOSED and len(parts) == 3 and parts[1].isdigit() and parts[0] in self.launch.ports:
                    pairs = {(source, target) for target in unpack_ranks(parts[2]) if target < self.launch.nodes}
                    closed.setdefault((parts[0], int(parts[1])), set()).update(pairs)
        words = closed_sentence(self.launch, self.expects, closed) if closed else ""
        for target, stranger in sorted(tests.strangers.items()):
            name = node_name(self.launch, target.rank)
            words += f"{' ' * bool(words)}Another run ({stranger}) answers at {target.address}:{target.port} of {name}."
        return words

    def _clock_ahead(self) -> float | None:
        ahead: float | None = getattr(self.board_client.folder, "clock_ahead", None) if self.board_client else None
        return ahead


def _run_mark(launch: Launch) -> str:
    """Tells runs and starts apart, and says nothing about them to others."""
    return hashlib.sha256(f"{launch.stack} {launch.folder}".encode()).hexdigest()[:12]
