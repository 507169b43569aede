# SPDX-License-Identifier: Apache-2.0
"""`trainyard runs why` of a run of many nodes that print much: the whole command against `runs list` of the same run,
which reads the same statuses, and the judging alone against a search of the same texts for the same words."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.harness.rows import ROOT, Aim, Row, Spent, in_turns, process_row
from components.platform.runs import NodeRun
from components.platform.status import NodeStatus, RunStatus
from tests.support.why_world import WhyWorld
from trainyard.why.judge import judge_run
from trainyard.why.model import RunEvidence
from trainyard.why.symptoms import LONGEST_LINE, MOST_CHARACTERS, known_symptoms

NODES, VICTIM, FRAMES = 64, 40, 10_000
# Of the whole command.
AIM_SECONDS = 1.0
_STACK, _JOB, _RUN = "why-oci", "gang", "many"
# Each rank prints more lines than are read. Then one raises an exception, very deep in its code, while others wait.
_TRAIN = f"""
import os, sys, time
rank = int(os.environ["RANK"])

def read_shard(left):
    if left:
        return read_part(left - 1)
    raise ValueError("shard 7 has no header")

def read_part(left):
    return read_shard(left)

def all_reduce():
    time.sleep(600)

for line in range(1000):
    print("rank", rank, "line", line, "." * 80)
sys.stdout.flush()
if rank == {VICTIM}:
    time.sleep(3)
    sys.setrecursionlimit(10**6)
    read_shard({FRAMES} // 2)
all_reduce()
"""


def rows() -> list[Row]:
    return [_row_of_command(), _row_of_judge()]


def _row_of_command() -> Row:
    with tempfile.TemporaryDirectory(prefix="bench-why-") as folder:
        world = WhyWorld(Path(folder))
        file = world.stacks / f"Pulumi.{_STACK}.yaml"
        text = file.read_text()
        file.write_text(text.replace("roles: { main: 1, worker: 2 }", f"roles: {{ main: 1, worker: {NODES - 1} }}", 1))
        (world.stacks / "gang" / "train.py").write_text(_TRAIN)
        place = ["--local", "--stacks", str(world.stacks)]
        try:
            world.bring_up("oci")
            done = world.trainyard("run", _STACK, _JOB, "--follow", "--name", _RUN, *place)
            assert "Started " in done.stderr, done.stdout[-2000:] + done.stderr
            run = [_STACK, f"{_JOB}/try-{_RUN}", *place, "--format", "json"]
            verdict = json.loads(world.trainyard("runs", "why", *run).stdout)
            assert verdict["ranks"] == [VICTIM], verdict
            ours, floor = in_turns(
                lambda: _spent(world, "runs", "why", *run), lambda: _spent(world, "runs", "list", *run)
            )
        finally:
            world.end()
    return process_row(
        f"runs why of {NODES} nodes", "runs list of the same run", ours, floor, Aim("figure", AIM_SECONDS)
    )


def _spent(world: WhyWorld, *words: str) -> Spent:
    before, began = _children_seconds(), time.perf_counter()
    environment = {**os.environ, "TRAINYARD_HOME": str(world.home)}
    subprocess.run(
        [sys.executable, "-m", "trainyard", *words], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=False
    )
    return Spent(time.perf_counter() - began, _children_seconds() - before)


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _row_of_judge() -> Row:
    """As much output of each rank as is read at most, in which no symptom is."""
    symptoms = known_symptoms()
    line = "an epoch of training without any trouble " * 3
    lines = (line[:LONGEST_LINE],) * (MOST_CHARACTERS // (len(line) + 1))
    seen = RunEvidence(_failed_run(), dict.fromkeys(range(NODES), lines), {})
    texts, patterns = ["\n".join(lines)] * NODES, [part for row in symptoms for parts in row.patterns for part in parts]
    ours, floor = in_turns(
        lambda: _seconds(lambda: judge_run(seen, symptoms)),
        lambda: _seconds(lambda: [part in text for text in map(str.lower, texts) for part in patterns]),
    )
    return Row(
        f"judging {NODES} ranks, 64 KiB of output each", min(ours), "s", "a search of the same texts", min(floor),
        min(ours) / min(floor), Aim("figure", AIM_SECONDS),
    )  # fmt: skip


def _failed_run() -> RunStatus:
    nodes = []
    for rank in range(NODES):
        victim = rank == VICTIM
        status: dict[str, Any] = {
            "state": "failed" if victim else "stopped",
            "reason": "ended with code 1" if victim else f"stopped: rank {VICTIM} (worker-39) failed with code 1",
        }
        run = NodeRun(f"worker-{rank}", f"r{rank}", "FAILED", "The job run exited with code 1")
        nodes.append(NodeStatus(rank, run, "", None, status))
    return RunStatus("s", "job", "base", 1, datetime(2026, 5, 1, tzinfo=UTC), tuple(nodes), None)


def _seconds(work: Callable[[], object]) -> float:
    """Processor seconds."""
    began = time.process_time()
    work()
    return time.process_time() - began
