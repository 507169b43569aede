# SPDX-License-Identifier: Apache-2.0
"""Preflight: from the last arrival of a gang until all its nodes have tested their ports and go on, and what a
connection costs, against a bare loop that opens as many connections between the same addresses."""

from __future__ import annotations

import itertools
import json
import os
import re
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.harness.rows import Aim, Row
from tests.support.cloud_fixture import Clients, local_cloud
from tests.support.cloud_world import World
from tests.support.nodes import Nodes, Place, nodes, planned
from tests.support.samples import plan
from tests.support.waiting import eventually

COUNTS = (8, 32, 64)
# Of all nodes together, for eight nodes.
AIM_SECONDS = 2.0
# A connection of the largest gang may cost so many times what one of the next smaller gang costs.
AIM_LINEAR = 1.25
_LONGEST = 120.0
# What each node runs once it may: it says when, and costs next to nothing.
_SAYS_WHEN = ["sh", "-c", "echo released $(date +%s.%N); exec sleep 600"]
_RELEASED = re.compile(r"released (\d+\.\d+)")


@dataclass(frozen=True)
class MeasuredPreflight:
    """`seconds`: from the last arrival until the last node goes on. `processor`: what all launchers used meanwhile.
    `floor`: processor seconds of the bare loop."""

    seconds: float
    processor: float
    connections: int
    floor: float
    floor_clock: float

    @property
    def each(self) -> float:
        """Milliseconds of processor time for a connection."""
        return 1000 * self.processor / self.connections


def rows() -> list[Row]:
    """`BENCH_NODES="8 128"` sets other numbers of nodes."""
    counts = [int(word) for word in os.environ.get("BENCH_NODES", "").split()] or COUNTS
    with tempfile.TemporaryDirectory(prefix="bench-preflight-") as folder:
        home = Path(folder)
        with local_cloud(home / "cloud") as cloud:
            place = Place(World(Clients(cloud)), home / "principal")
            found = {count: _measure(place, home / f"nodes-{count}", count) for count in counts}
    made: list[Row] = []
    for count, one in found.items():
        name = f"{count} nodes, {one.connections:,} connections"
        against = "a bare loop"
        made += [
            Row(f"{name}: until all go on", one.seconds, "s", against, one.floor_clock, one.seconds / one.floor_clock,
                Aim("figure", AIM_SECONDS) if count <= 8 else None),
            Row(f"{name}: processor time", one.processor, "s", against, one.floor, one.processor / one.floor),
        ]  # fmt: skip
    for smaller, larger in itertools.pairwise(sorted(found)[-2:]):
        few, many = found[smaller].each, found[larger].each
        row = f"a connection of {larger} nodes: processor time"
        made.append(Row(row, many, "ms", f"one of {smaller} nodes", few, many / few, Aim("ratio", AIM_LINEAR)))
    return made


def _measure(place: Place, home: Path, count: int) -> MeasuredPreflight:
    job = planned("pytorch", {"main": 1, "worker": count - 1})
    # Without the accelerators of the plan, which this machine does not have.
    expected = {key: value for key, value in plan(jobs={"train": job}).jobs["train"].expects.items() if key != "nodes"}
    with nodes(place, home, job, f"nodes-{count}", changes={"command": _SAYS_WHEN}) as run:
        run.variables = {"TRAINYARD_EXPECTS": json.dumps(expected)}
        run.start(*range(count - 1))
        eventually(lambda: _arrived(place, run) == count - 1, seconds=_LONGEST)
        run.start(count - 1)
        eventually(lambda: _arrived(place, run) == count, seconds=_LONGEST, longest_pause=0.02)
        arrived, before = time.time(), _processor_seconds(run)
        released = [float(run.launchers[rank].says(_RELEASED.pattern, _LONGEST)[1]) for rank in range(count)]
        used = _processor_seconds(run) - before
        results = eventually(lambda: [place.status(run, rank)["preflight"] for rank in range(count)], all)
        assert all(result["findings"] == [] for result in results), results
        connections = sum(result["connections"] for result in results)
        floor = _bare_loop([run.address(rank) for rank in range(count)], connections)
    return MeasuredPreflight(max(released) - arrived, used, connections, *floor)


def _arrived(place: Place, run: Nodes) -> int:
    return len(place.objects(f"{run.folder}/peers/"))


def _processor_seconds(run: Nodes) -> float:
    """What the launchers have used, without their commands."""
    return sum(sum(psutil.Process(started.process.pid).cpu_times()[:2]) for started in run.launchers.values())


def _bare_loop(addresses: Sequence[str], connections: int) -> tuple[float, float]:
    """One process that listens on each address, and connects each to each in turn. Processor seconds, and seconds."""
    with ExitStack() as kept:
        servers = {}
        for address in addresses:
            servers[address] = kept.enter_context(socket.create_server((address, 0), backlog=8))
        began, before = time.perf_counter(), time.process_time()
        for source, target in itertools.islice(_pairs(addresses), connections):
            server = servers[target]
            with socket.create_connection((target, server.getsockname()[1]), 5, (source, 0)):
                server.accept()[0].close()
        return time.process_time() - before, time.perf_counter() - began


def _pairs(addresses: Sequence[str]) -> Iterator[tuple[str, str]]:
    return itertools.cycle(itertools.permutations(addresses, 2))
