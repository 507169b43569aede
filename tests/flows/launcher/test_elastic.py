# SPDX-License-Identifier: Apache-2.0
"""Horovod's elastic mode without SSH: the remaining nodes go on from memory, and a node that comes back joins again."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localcloud.environments.find import Environment, MissingEnvironment, find_environment
from schemas.model import PortRange, Retry, Role
from tests.support.nodes import Nodes, Place, block, nodes, planned

SCRIPT = Path(__file__).parents[2] / "frameworks" / "elastic" / "train.py"
STEPS = 24
# A node that comes back has to import torch again, on a busy machine.
PATIENT = 900.0
# How long the others wait for it, and how long a node may wait for one that has noticed a failure without reporting it.
SILENCE = "45"


@pytest.fixture
def horovod() -> Environment:
    found = find_environment("horovod-pytorch")
    if isinstance(found, MissingEnvironment):
        pytest.skip(f"not rehearsed: the environment {found.name}: {found.reason}; {found.remedy}")
    return found


@contextmanager
def training(
    horovod: Environment,
    place: Place,
    home: Path,
    name: str,
    least: int,
    retries: int = 0,
    workers: int = 0,
    processes: int = 1,
    count: int = 3,
    **variables: str,
) -> Iterator[Nodes]:
    """Started nodes that train together. The main node may start again `retries` times, each other node `workers`
    times.
    """
    port, _ = block(1)
    spec = planned(
        "horovod", {"main": Role(1, retry=Retry(retries)), "worker": Role(count - 1, retry=Retry(workers))},
        strategy="pytorch", command="train.py",
        options={"elastic": True, "minNodes": least, "processes": processes},
        ports={"rendezvous": PortRange(port, port), "data": "all"},
    )  # fmt: skip
    told = {**horovod.variables, "TRAINYARD_LOST_SECONDS": "600", "HOROVOD_GLOO_TIMEOUT_SECONDS": SILENCE, **variables}
    with nodes(place, home, spec, name, interpreter=str(horovod.interpreter), variables=told) as run:
        shutil.copy(SCRIPT, home)
        yield run.start()


def pids(text: str) -> set[str]:
    return set(re.findall(r" pid (\d+)", text))


def fall(run: Nodes, rank: int) -> None:
    """Ends a worker, and keeps its launcher from starting it again before the others have gone on without it."""
    launcher = run.launchers[rank]
    launcher.says("falls at", PATIENT)
    launcher.process.send_signal(signal.SIGSTOP)
    try:
        os.kill(int(pids(launcher.text).pop()), signal.SIGKILL)
        run.launchers[0].says(rf"world 2: .* gone: {rank}", PATIENT)
    finally:
        launcher.process.send_signal(signal.SIGCONT)


def worlds(text: str) -> list[int]:
    return [int(size) for size in re.findall(r"\] world (\d+) ", text)]


def goes_on_from_its_commits(text: str) -> None:
    """No committed step was repeated or left out."""
    step = committed = 0
    for what, number in re.findall(r"\] (step|commit|world \d+ rank \d+ pid \d+ from|done) (\d+)", text):
        count = int(number)
        if what == "step":
            assert count == step + 1, text
            step = count
        elif what == "commit":
            assert count == step, text
            committed = count
        else:
            # Rank 0 sends the committed state to a worker that has just begun.
            assert count in (step, committed) or step == 0, text
            step = count


def test_a_failed_worker_rejoins_workers_that_continued_from_memory(
    horovod: Environment, place: Place, tmp_path: Path
) -> None:
    with training(horovod, place, tmp_path, "back", 2, workers=1, FALLS="1.0@3", HANGS="1", WAITS_FOR="3") as run:
        fall(run, 1)
        assert run.codes(PATIENT) == [0, 0, 0]
        for rank in (0, 2):
            text = run.launchers[rank].text
            assert len(pids(text)) == 1, "the others stayed the processes they were"
            assert worlds(text) == [3, 2, 3]
            goes_on_from_its_commits(text)
        back = run.launchers[1].text
        assert len(pids(back)) == 2
        assert "SIGKILL (code 137), a failure of the kind unknown: retry 1 of 1" in back
        for started in run.launchers.values():
            assert f"done {STEPS} in 3 epochs, world 3" in started.text


@pytest.mark.torture
def test_the_others_finish_without_a_node_whose_launcher_is_lost(
    horovod: Environment, place: Place, tmp_path: Path
) -> None:
    with training(horovod, place, tmp_path, "lost", 2, FALLS="1.0@3", HANGS="1", TRAINYARD_LOST_SECONDS="30") as run:
        run.launchers[1].says("falls at", PATIENT)
        run.launchers[1].process.kill()
        assert run.codes(PATIENT) == [0, -9, 0]
        for rank in (0, 2):
            text = run.launchers[rank].text
            assert len(pids(text)) == 1
            assert worlds(text) == [3, 2]
            goes_on_from_its_commits(text)
            assert f"done {STEPS} in 3 epochs, world 2" in text


def test_with_fewer_nodes_than_it_needs_the_run_fails(horovod: Environment, place: Place, tmp_path: Path) -> None:
    with training(horovod, place, tmp_path, "few", 3, FALLS="1.0@3") as run:
        assert run.codes(PATIENT) == [137, 137, 137]
        why = r"rank 1 \(worker-0\) failed with SIGKILL \(code 137\), and training needs 3 nodes \(`minNodes`\)"
        assert re.search(why, run.launchers[0].text)
        assert worlds(run.launchers[0].text) == [3]


@pytest.mark.torture
def test_when_the_main_nodes_worker_fails_all_start_again(horovod: Environment, place: Place, tmp_path: Path) -> None:
    with training(horovod, place, tmp_path, "main", 2, retries=1, FALLS="0.0@3") as run:
        assert run.codes(PATIENT) == [0, 0, 0]
        for started in run.launchers.values():
            assert worlds(started.text) == [3, 3]
            assert f"done {STEPS} in 3 epochs, world 3" in started.text
        assert "retry 1" not in run.launchers[2].text, "only who failed first is charged"


def test_training_restarts_without_a_lost_node(horovod: Environment, place: Place, tmp_path: Path) -> None:
    with training(horovod, place, tmp_path, "again", 2, retries=1, FALLS="1.0@3 0.0@2") as run:
        assert run.codes(PATIENT) == [0, 137, 0]
        assert "2 of 3 nodes are there" in run.launchers[0].text
        for rank in (0, 2):
            assert f"done {STEPS} in 3 epochs, world 2" in run.launchers[rank].text


@pytest.mark.torture
def test_all_processes_of_a_node_leave_and_rejoin_together(horovod: Environment, place: Place, tmp_path: Path) -> None:
    with training(
        horovod, place, tmp_path, "pairs", 1, workers=1, processes=2, FALLS="2.0@6", HANGS="1", WAITS_FOR="6"
    ) as run:
        fall(run, 2)
        assert run.codes(PATIENT) == [0, 0, 0]
        assert re.search(r"world 2: 4 processes on nodes 0, 1 .*gone: 2", run.launchers[0].text)
        for started in run.launchers.values():
            assert started.text.count(f"done {STEPS} in 3 epochs, world 6") == 2


@pytest.mark.torture
def test_a_node_that_rejoins_after_training_ended_succeeds(horovod: Environment, place: Place, tmp_path: Path) -> None:
    with training(horovod, place, tmp_path, "over", 1, workers=1, count=2, FALLS="1.0@2", HANGS="1", HOLDS="1") as run:
        fall(run, 1)
        run.launchers[1].says("waiting for the others: at first until all are there, later until they commit", PATIENT)
        (tmp_path / "go").touch()
        assert run.codes(PATIENT) == [0, 0]
        assert f"done {STEPS} in 3 epochs, world 1" in run.launchers[0].text
        assert place.status(run, 1)["state"] == "stopped"
