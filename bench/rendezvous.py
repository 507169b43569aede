# SPDX-License-Identifier: Apache-2.0
"""The rendezvous of launchers: time from the last arrival until all continue, calls to the bucket, memory per node."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.harness.rows import ROOT, Aim, Row
from components.oci.client.job_runs import MAIN_VARIABLE, start_of_job_run
from localcloud.admin import list_calls
from localcloud.oci.ocids import new_ocid
from tests.support.cloud_fixture import Clients, local_cloud
from tests.support.cloud_world import World
from tests.support.nodes import BUCKET, Place, planned
from tests.support.samples import plan
from tests.support.waiting import eventually

COUNTS = (8, 32, 64)
# How long all but the last launcher wait before the last one starts.
_QUIET_SECONDS = 5.0
_GOES_ON = "import time; print('released', time.time(), flush=True); time.sleep(600)"


@dataclass(frozen=True)
class MeasuredRendezvous:
    """One rendezvous: seconds until the last was released, calls per node and second, the largest launcher."""

    seconds: float
    calls: float
    megabytes: float
    floor: float


def rows() -> list[Row]:
    counts = [int(word) for word in os.environ.get("BENCH_NODES", "").split()] or COUNTS
    with (
        tempfile.TemporaryDirectory(prefix="bench-rendezvous-") as folder,
        local_cloud(Path(folder) / "cloud") as cloud,
    ):
        place = Place(World(Clients(cloud)), Path(folder) / "principal")
        found = {count: _measure_rendezvous(place, Path(folder), count) for count in counts}
    made: list[Row] = []
    for count, one in found.items():
        aim = Aim("figure", 1.0) if count <= 64 else None
        name = f"{count} launchers meet"
        made += [
            Row(name, one.seconds, "s", "one list of the folder", one.floor, one.seconds / one.floor, aim),
            Row(f"{name}: calls a node and second", one.calls, "", "ADS, every 20 s", 0.05, one.calls / 0.05,
                Aim("figure", 4.0)),
            Row(f"{name}: memory of a launcher", one.megabytes, "MB", "a bare Python", _bare(), one.megabytes / _bare(),
                Aim("figure", 30.0)),
        ]  # fmt: skip
    return made


def _measure_rendezvous(place: Place, folder: Path, count: int) -> MeasuredRendezvous:
    documents, main = _documents(place, count), new_ocid("datasciencejobrun", "iad")
    peers = f"train/nodes-{count}/1/{start_of_job_run(main, {})}/peers/"
    with _launchers() as started:
        for document in documents[:-1]:
            started.append(_start(place, folder, document, main))
        eventually(lambda: len(place.objects(peers)) == count - 1)
        before = _judged(place)
        time.sleep(_QUIET_SECONDS)
        calls = _judged(place) - before
        started.append(_start(place, folder, documents[-1], main))
        eventually(lambda: len(place.objects(peers)) == count, longest_pause=0.02)
        arrived = time.time()
        megabytes = max(_resident(process.pid) for process in started)
        with ThreadPoolExecutor(count) as pool:
            released = list(pool.map(_released, started))
        begun = time.perf_counter()
        place.objects(peers)
        floor = time.perf_counter() - begun
    return MeasuredRendezvous(max(released) - arrived, calls / _QUIET_SECONDS / (count - 1), megabytes, floor)


def _documents(place: Place, count: int) -> list[dict[str, object]]:
    """The documents of the nodes of a job whose ports nobody tests."""
    made = plan(jobs={"train": planned("pytorch", {"main": 1, "worker": count - 1}, ports={"data": "all"})})
    bucket = f"oci://{BUCKET}@{place.namespace}"
    found = []
    for node in made.jobs["train"].runs["base"].nodes:
        text = json.dumps({**node.launch, "command": ["python", "-c", _GOES_ON]})
        found.append(json.loads(text.replace("${bucket}", bucket).replace("/base", f"/nodes-{count}")))
    return found


def _start(place: Place, folder: Path, document: dict[str, object], main: str) -> subprocess.Popen[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {
        "PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(folder), "TRAINYARD_LAUNCH": json.dumps(document),
        MAIN_VARIABLE: main, **place.environment,
    }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-m", "launcher"], env=environment, cwd=folder, stdout=subprocess.PIPE, text=True
    )


@contextmanager
def _launchers() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    try:
        yield started
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.communicate()


def _released(process: subprocess.Popen[str]) -> float:
    """When the launcher continued, by its log line. Its command would add the start of a Python."""
    assert process.stdout is not None
    for line in process.stdout:
        if re.search(r"all \d+ nodes are there", line):
            return time.time()
    raise AssertionError("a launcher ended before all were there")


def _judged(place: Place) -> int:
    """How many calls of nodes the cloud has decided so far. Its rows are numbered, and a repeated call gets a new
    number."""
    return max(int(row["id"]) for row in list_calls(place.world.clients.cloud))


def _resident(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else 0.0


def _bare() -> float:
    text = "import re; print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
    return int(subprocess.check_output([sys.executable, "-c", text])) / 1024
