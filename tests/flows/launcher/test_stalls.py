# SPDX-License-Identifier: Apache-2.0
"""Gangs that hang are ended, with the reason and each rank's last line; one busy rank keeps all the others alive."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from launcher import exits
from schemas.model import Job
from tests.support.nodes import ROOT, Nodes, Place, gang, nodes, planned
from tests.support.programs import require_program

LIMIT = "2"
REASON = r"stalled: no output, progress, processor or disk use on any rank for 2 s"
# The behaviour of each rank: `hang`, `end`, or compile for three times the limit. `wait` waits for the compiling rank,
# then works. `first` hangs only in its first life.
PLAN = """
import os, sys, time
rank, folder = int(os.environ["RANK"]), os.getcwd()
what = sys.argv[1].split(",")[rank]
life = len([name for name in os.listdir(folder) if name.startswith(f"life-{rank}-")])
open(f"{folder}/life-{rank}-{life}", "w").close()
print("rank", rank, "enters", what, life, flush=True)
def work(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
if what == "compile":
    work(6)
    open(f"{folder}/compiled", "w").close()
elif what == "wait":
    while not os.path.exists(f"{folder}/compiled"):
        time.sleep(0.5)
    work(2)
elif what == "hang" or (what == "first" and not life):
    time.sleep(300)
"""


def start(run: Nodes, what: str, limit: str = LIMIT) -> Nodes:
    run.script(PLAN)
    run.changes = {**run.changes, "command": ["train.py", what]}
    return run.start(TRAINYARD_STALL_SECONDS=limit)


def reasons(place: Place, run: Nodes, count: int) -> list[str]:
    return [place.status(run, rank)["reason"] for rank in range(count)]


def test_a_hanging_gang_is_ended_and_every_rank_prints_the_reason(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(), "hangs") as run:
        start(run, "hang,hang,hang")
        assert run.codes() == [exits.STALLED] * 3
        assert all(re.match(REASON, reason) for reason in reasons(place, run, 3))
        for rank, label in enumerate(("0 (main-0)", "1 (worker-0)", "2 (worker-1)")):
            assert f"rank {label} printed last: rank {rank} enters hang 0" in run.launchers[0].text
        assert "printed last" not in run.launchers[1].text + run.launchers[2].text


def test_a_finished_rank_does_not_count_as_active(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(retries=1, nodes=2), "one-left") as run:
        start(run, "end,hang")
        assert run.codes()[1] == exits.STALLED
        assert "rank 1 (worker-0) printed last: rank 1 enters hang 0" in run.launchers[1].text
        assert "this node cannot start again" in run.launchers[1].text


def test_one_active_rank_keeps_the_run_alive(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(nodes=2), "compiles") as run:
        start(run, "compile,wait")
        assert run.codes() == [0, 0]
        assert "idle" not in run.launchers[0].text
        assert "idle: no output, progress, processor or disk use on this node for 2 s" in run.launchers[1].text
        assert "active again: processor" in run.launchers[1].text
        assert place.status(run, 1)["reason"] == ""


def test_a_retry_policy_restarts_a_stalled_run(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(retries=1, nodes=2), "hangs-once") as run:
        start(run, "first,first")
        assert run.codes() == [0, 0]
        assert len(list(tmp_path.glob("life-*"))) == 4


@pytest.mark.parametrize(("name", "spec", "limit"), [
    ("off", gang(nodes=2), "0"),
    ("single", planned("pytorch", {"main": 1}, ports={"data": "all"}), LIMIT),
])  # fmt: skip
def test_services_single_nodes_and_runs_without_a_bucket_are_not_watched(
    place: Place, tmp_path: Path, name: str, spec: Job, limit: str
) -> None:
    with nodes(place, tmp_path, spec, f"unwatched-{name}") as run:
        run.script(PLAN.replace("sleep(300)", "sleep(5)"))
        run.changes = {**run.changes, "command": ["train.py", "hang,hang"]}
        assert set(run.start(TRAINYARD_STALL_SECONDS=limit).codes()) == {0}
        assert "idle" not in run.shown()


NVML = """
typedef struct { unsigned int gpu, memory; } utilization;
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned int *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device) { *device = (void *)(index + 1UL); return 0; }
int nvmlDeviceGetUtilizationRates(void *device, utilization *busy) { busy->gpu = 40 * (unsigned long)device; return 0; }
"""


def test_activity_of_nvidia_gpus_is_read_from_the_driver(tmp_path: Path) -> None:
    (tmp_path / "nvml.c").write_text(NVML)
    subprocess.run(
        [require_program("gcc"), "-shared", "-fPIC", "-o", "libnvidia-ml.so.1", "nvml.c"], cwd=tmp_path, check=True
    )
    asks = "from launcher.activity import Gpus; print(Gpus().readable, Gpus().busiest())"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    answer = subprocess.run(
        [sys.executable, "-c", asks], env=environment, capture_output=True, text=True, check=True,
        cwd=ROOT,
    )  # fmt: skip
    assert answer.stdout.split() == ["True", "80"]
