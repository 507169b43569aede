# SPDX-License-Identifier: Apache-2.0
"""What a launcher costs while its node trains: percent of one processor, against a program that only passes on the
lines of the same command."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from bench.harness.rows import Aim, Row
from tests.support.cloud_fixture import Clients, local_cloud
from tests.support.cloud_world import World
from tests.support.nodes import Place, nodes, planned

NODES = 2
# Of one processor.
AIM_PERCENT = 0.5
# A new launcher still posts what happened at the start.
_SETTLED_SECONDS, _SECONDS = 5.0, 40.0
# Trains: a line in each second, and a line of progress.
_TRAIN = """
import os, time
for step in range(10**6):
    print("step", step, "loss", 1 / (step + 1), flush=True)
    with open(os.environ.get("TRAINYARD_PROGRESS", os.devnull), "a") as progress:
        progress.write('{"step": %d}\\n' % step)
    time.sleep(1)
"""
_PASSES_ON = """
import subprocess, sys
with subprocess.Popen([sys.executable, "-u", *sys.argv[1:]], stdout=subprocess.PIPE) as process:
    for line in process.stdout:
        sys.stdout.buffer.write(b"[0] " + line)
        sys.stdout.flush()
"""


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="bench-beside-training-") as folder:
        home = Path(folder)
        with local_cloud(home / "cloud") as cloud:
            place = Place(World(Clients(cloud)), home / "principal")
            job = planned("pytorch", {"main": 1, "worker": NODES - 1})
            with nodes(place, home / "nodes", job, "trains", changes={"command": ["train.py"]}) as run:
                run.script(_TRAIN)
                run.start()
                for started in run.launchers.values():
                    started.says("step 1 ")
                script = str(run.home / "train.py")
                with subprocess.Popen(
                    [sys.executable, "-c", _PASSES_ON, script], stdout=subprocess.DEVNULL, cwd=run.home
                ) as bare:
                    time.sleep(_SETTLED_SECONDS)
                    pids = [bare.pid, *(started.process.pid for started in run.launchers.values())]
                    before, began = [_processor_seconds(pid) for pid in pids], time.monotonic()
                    time.sleep(_SECONDS)
                    passed = time.monotonic() - began
                    used = [_processor_seconds(pid) - first for pid, first in zip(pids, before, strict=True)]
                    for child in psutil.Process(bare.pid).children():
                        child.kill()
    floor, *ours = (100 * seconds / passed for seconds in used)
    worst = max(ours)
    name = f"the busier of {NODES} launchers while its node trains"
    against = "passes on the lines"
    return [Row(name, worst, "%", against, floor, worst / max(floor, 0.01), Aim("figure", AIM_PERCENT))]


def _processor_seconds(pid: int) -> float:
    """What the process itself has used, to the nanosecond: /proc/PID/stat counts ticks of ten milliseconds."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
