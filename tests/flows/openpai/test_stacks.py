# SPDX-License-Identifier: Apache-2.0
"""Stacks of OpenPAI, from their files to runs that trained: the real engine, and tasks that run on one local cloud."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import pytest

from catalog.environments import Need
from localcloud.environments.find import MissingEnvironment, find_environment_for
from tests.support.console_reader import console_runs, console_sections
from tests.support.local_team import Team, summary

pytestmark = pytest.mark.engine

# Two values that differ only in a character which no name of a job has.
SWEEP = """\
    line:
      framework: pytorch
      start: plain
      image: openpai/standard:python_3.6-pytorch_1.2.0-gpu
      shape: gpu2
      roles: { main: 1 }
      ports: { rendezvous: 29400 }
      code: ./line
      command: train.py
      runs:
        sweep: { each: { lr: [0.1, "0-1"] }, args: [--lr, "${each.lr}"], until: finished }
"""
STACK, BOTH = "openpai-ddp-gloo", "oci-or-openpai"
OTHER = "both-on-openpai"


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    if isinstance(find_environment_for(Need("pytorch", None, frozenset({"torch"}))), MissingEnvironment):
        pytest.skip("no local environment with PyTorch")
    one = Team(tmp_path_factory.mktemp("openpai"), STACK, BOTH)
    one.change("--epochs 2", "--epochs 1 --batches 2")
    one.change("        base: {}", "        base: { until: finished }")
    one.file.write_text(one.file.read_text() + SWEEP)
    (one.stacks / "line").mkdir()
    (one.stacks / "line" / "train.py").write_text("import sys\nprint('given', sys.argv[1:])\n")
    yield one
    one.end()


def runs(team: Team, word: str, *more: str) -> str:
    where = ("--stacks", str(team.stacks), "--home", str(team.home / "cloud"))
    done = team.run("runs", word, *more, *where)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_stack_trains_and_a_changed_argument_starts_its_run_again(team: Team) -> None:
    first = team.trainyard("up", STACK)
    assert re.search(r"run +cifar10/base: SUCCEEDED", first), first
    assert re.search(r"left +.*result.json", first), first
    assert "here: job cifar10: the local cluster has no plugin ssh: it is left out" in first
    assert first.count("TY887") == 1, "a warning of the file is printed once"
    assert '"ranks": 4' in first, "two nodes with two processes each"
    assert "unchanged" in team.trainyard("preview", STACK, "--expect-no-changes")
    # All runs of the local cloud, whatever platforms their stacks are on.
    assert re.search(rf"^({STACK} +)?cifar10/base +SUCCEEDED ", runs(team, "list"), re.MULTILINE)
    _on_the_console(team)
    _swept(team)
    assert re.search(r"epoch 1 loss \d", runs(team, "logs", STACK, "cifar10/base"))

    where = ("--stacks", str(team.stacks), "--home", str(team.home / "cloud"))
    tried = team.run("run", STACK, "cifar10/base", "--follow", *where, "--", "--batches", "1")
    assert tried.returncode == 0, tried.stdout + tried.stderr

    # It resumes from the previous run's checkpoint on the storage. A further value of the sweep restarts no run.
    team.change('[0.1, "0-1"]', '[0.1, 0.25, "0-1"]')
    team.change("--epochs 1 --batches 2", "--epochs 2 --batches 2")
    changed = summary(team.trainyard("up", STACK))
    assert (changed["replaced"], changed["created"]) == (1, 1), changed

    # The cloud is killed. It comes back with its jobs, at the same address.
    os.kill(team.cloud.pid, signal.SIGKILL)
    assert "unchanged" in team.trainyard("preview", STACK, "--expect-no-changes")
    assert re.search(r"epoch 2 loss \d", runs(team, "logs", STACK, "cifar10/base"))


def _swept(team: Team) -> None:
    """Each value is a job with a name of its own."""
    for value in ("0.1", "0-1"):
        assert f"given ['--lr', '{value}']" in runs(team, "logs", STACK, f"line/sweep-lr-{value}")
    sweep = [row["name"] for row in console_sections(team.cloud)["Jobs"] if "line-sweep" in row["name"]]
    assert len(sweep) == len(set(sweep)) == 2
    assert all("-line-sweep-lr-0-1-" in name for name in sweep), sweep


def _on_the_console(team: Team) -> None:
    """The run's folder, whose address `up` prints at its end."""
    run = console_runs(team.cloud)["cifar10/base"]
    assert run["state"] == "SUCCEEDED"
    assert [(rank["node"], rank["state"], rank["rank"]) for rank in run["ranks"]] == [
        ("main-0", "SUCCEEDED", 0), ("worker-0", "SUCCEEDED", 1),
    ]  # fmt: skip
    assert any("epoch 1 loss" in line for line in run["lines"]), run["lines"]
    facts = dict(run["facts"])
    assert "ended with exit code 0" in facts["attempt 1"], facts
    assert "TRAINYARD_OUTPUT" in facts["variables"]
    network = run["network"]
    talked = [(row["from"], row["to"]) for row in network["rows"] if row["kind"] == "used"]
    assert network["reason"] or (["worker"], ["main"]) in talked, network
    sections = console_sections(team.cloud)
    (job,) = (row for row in sections["Jobs"] if "cifar10-base" in row["name"])
    assert (job["name"].startswith("deployer~"), job["state"]) == (True, "SUCCEEDED")
    assert [row["name"] for row in sections["Virtual clusters"]] == ["default", "reserved"]
    files = [row[0] for item in sections["Storages"] for table in item["tables"] for row in table["rows"]]
    assert any(name.endswith("result.json") for name in files), files


@pytest.mark.torture
def test_one_file_trains_on_both_platforms(team: Team) -> None:
    """Only the line with the platform differs."""
    file = team.stacks / f"Pulumi.{BOTH}.yaml"
    text = file.read_text().replace("        base: {}", "        base: { until: finished }")
    text = text.replace("--epochs 3", "--epochs 1")
    file.write_text(text)
    assert text.count("trainyard:platform: oci\n") == 1
    other = text.replace("trainyard:platform: oci\n", "trainyard:platform: openpai\n")
    (team.stacks / f"Pulumi.{OTHER}.yaml").write_text(other)
    for stack in (BOTH, OTHER):
        up = team.trainyard("up", stack)
        assert re.search(r"run +resnet/base: SUCCEEDED", up), up
        assert '"ranks": 2' in up, up
    for stack in (BOTH, OTHER, STACK):
        last = team.trainyard("down", stack, "--yes")
    assert re.search(r"storage  \S+ with its \d+ files", last), last
    assert "Nothing is left" in team.trainyard("down", STACK, "--delete-data", "--yes")
    assert not (team.home / "cloud" / "server.json").exists(), "the last `down` stops the cloud"
