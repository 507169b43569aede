# SPDX-License-Identifier: Apache-2.0
"""Metrics of runs come from their processes, as the kernel reports them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud import files
from localcloud.oci.background_tasks import RunMeter
from localcloud.oci.tenancy_store import StateStore, StoredResource
from tests.support.waiting import eventually

BUSY = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
IDLE = "import time; time.sleep(600)"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StateStore]:
    store = StateStore(tmp_path / "state")
    yield store
    store.close()


@pytest.fixture
def nodes(tmp_path: Path, store: StateStore) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """A run that computes, in a child of a child, and one that waits."""
    started = {}
    try:
        for name, script in (("busy", BUSY), ("idle", IDLE)):
            process = started[name] = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
            store.add(StoredResource(name, "job-run", "compartment", name, "IN_PROGRESS", {}))
            (tmp_path / name).mkdir()
            identity = {"pid": process.pid, "started": files.process_start_time(process.pid)}
            (tmp_path / name / "node-0.pid").write_text(json.dumps(identity))
        yield started
    finally:
        for process in started.values():
            for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
                os.kill(int(child), signal.SIGKILL)
            process.kill()
            process.wait()


def _values(store: StateStore, run: str, name: str) -> list[float]:
    rows = store.connection.execute(
        "SELECT value FROM metrics WHERE name = ? AND dimensions LIKE ? ORDER BY time", (name, f"%{run}%")
    )
    return [value for (value,) in rows]


def test_a_run_is_measured_by_the_use_of_its_processes(
    tmp_path: Path, store: StateStore, nodes: dict[str, subprocess.Popen[bytes]]
) -> None:
    meter = RunMeter(store, tmp_path)
    meter.measure()
    assert store.connection.execute("SELECT count(*) FROM metrics").fetchone() == (0,), (
        "one measurement is no difference"
    )

    def measured() -> dict[str, list[float]]:
        time.sleep(0.05)
        meter.measure()
        return {run: _values(store, run, "CpuUtilization") for run in nodes}

    # Both runs need the same time to start. After that, only one of them uses the processor.
    use = eventually(measured, lambda seen: sum(seen["busy"]) > 3 * sum(seen["idle"]) + 0.1)
    assert all(0 <= value <= 100 for values in use.values() for value in values)
    assert all(0 < value < 100 for run in nodes for value in _values(store, run, "MemoryUtilization"))


def test_a_run_without_living_processes_has_no_metrics(tmp_path: Path, store: StateStore) -> None:
    store.add(StoredResource("gone", "job-run", "compartment", "gone", "IN_PROGRESS", {}))
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "node-0.pid").write_text('{"pid": 1, "started": "another"}')
    meter = RunMeter(store, tmp_path)
    meter.measure()
    meter.measure()
    assert store.connection.execute("SELECT count(*) FROM metrics").fetchone() == (0,)
