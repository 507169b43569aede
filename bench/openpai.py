# SPDX-License-Identifier: Apache-2.0
"""Jobs of many tasks on the local OpenPAI, submitted and followed by its REST API: time, memory, and how both grow.

Each task is a host with its own address and its own process. The peer is a run of as many nodes on the local OCI, whose
nodes are hosts of the same kind. The difference is the cost of the cluster's controller and runtime. A figure is wall
time; a ratio compares processor time, on which other work on the machine has little effect.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psutil

from bench.harness.rows import Aim, Row, Spent, process_row
from bench.hosts import Tenancy
from localcloud import control
from tests.support.openpai_world import OVER, OpenPaiWorld, job

SOME, FEW, MANY = 64, 250, 500
COMMAND = "echo $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX of $PAI_TASK_ROLE_TASK_COUNT_worker"
# The cost of a task of the second half may be this many times that of one of the first half.
GROWTH = 1.25
# A job may take this many times the time of as many nodes on OCI.
AGAINST_NODES = 1.5
_LOOKS_SECONDS = 0.25
_MB = 1024 * 1024


def rows() -> list[Row]:
    some, few, many = (_measure_job(tasks) for tasks in (SOME, FEW, MANY))
    nodes = _spent_by_nodes(SOME)
    more = Spent(many.spent.clock - few.spent.clock, many.spent.processor - few.spent.processor)
    return [
        process_row(f"{SOME} tasks, until the job has ended", f"a run of {SOME} nodes on OCI", [some.spent], [nodes],
                    Aim("ratio", AGAINST_NODES)),
        process_row(f"{MANY} tasks, until the job has ended", f"{MANY // FEW} times {FEW} tasks",
                    [many.spent], [_times(few.spent, MANY / FEW)], Aim("ratio", GROWTH)),
        process_row(f"a task more, from {FEW} on", f"one of the first {FEW}", [_times(more, 1 / (MANY - FEW))],
                    [_times(few.spent, 1 / FEW)], Aim("ratio", GROWTH)),
        Row(f"{MANY} tasks, the server's own memory", many.memory, "MB", f"with {FEW} tasks", few.memory,
            many.memory / few.memory, Aim("ratio", GROWTH * MANY / FEW)),
        Row(f"{MANY} tasks, the slowest look at the job", many.slowest, "s", f"with {FEW} tasks", few.slowest,
            many.slowest / few.slowest),
    ]  # fmt: skip


def _times(one: Spent, number: float) -> Spent:
    return Spent(one.clock * number, one.processor * number)


class _JobMeasurement:
    """One job on its own local cloud: its time, its server's peak memory, and the slowest request for its status."""

    def __init__(self, cloud: control.Cloud, tasks: int) -> None:
        world, server = OpenPaiWorld(cloud), psutil.Process(cloud.pid)
        before, self.slowest = server.memory_info().rss, 0.0
        with _PeakSampler(lambda: server.memory_info().rss) as highest:
            self.spent = _spent(cloud, lambda: self._follow(world, tasks))
        self.memory = (highest.value - before) / _MB

    def _follow(self, world: OpenPaiWorld, tasks: int) -> None:
        name = world.submitted(job("many", COMMAND, role={"instances": tasks, "completion": {}}))
        while (status := self._look(world, name)["jobStatus"])["state"] not in OVER:
            time.sleep(_LOOKS_SECONDS)
        if status["state"] != "SUCCEEDED":
            raise RuntimeError(f"{status['state']}: {status['appExitDiagnostics']}")

    def _look(self, world: OpenPaiWorld, name: str) -> Any:
        began = time.perf_counter()
        status = world.status(name)
        self.slowest = max(self.slowest, time.perf_counter() - began)
        return status


def _spent(cloud: control.Cloud, action: Callable[[], object]) -> Spent:
    """An action's wall time, and the processor time of the server and of the processes that ended during it."""
    server = psutil.Process(cloud.pid)
    before, began = sum(server.cpu_times()), time.perf_counter()
    action()
    return Spent(time.perf_counter() - began, sum(server.cpu_times()) - before)


def _measure_job(tasks: int) -> _JobMeasurement:
    with _cloud() as cloud:
        return _JobMeasurement(cloud, tasks)


def _spent_by_nodes(number: int) -> Spent:
    with _cloud() as cloud:
        tenancy = Tenancy(cloud)
        return _spent(cloud, lambda: tenancy.run(tenancy.layout(number, tenancy.subnet)))


@contextmanager
def _cloud() -> Iterator[control.Cloud]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "cloud"
        try:
            yield control.start_cloud(home)
        finally:
            control.stop_cloud(home)


class _PeakSampler:
    """The highest value during the block, sampled by a thread."""

    def __init__(self, read: Callable[[], float]) -> None:
        self._read, self._over = read, Event()
        self._thread = Thread(target=self._watch, daemon=True)
        self.value = 0.0

    def _watch(self) -> None:
        while not self._over.wait(_LOOKS_SECONDS):
            self.value = max(self.value, self._read())

    def __enter__(self) -> _PeakSampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.value = max(self.value, self._read())
