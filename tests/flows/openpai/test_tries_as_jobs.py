# SPDX-License-Identifier: Apache-2.0
"""`trainyard run` on the local OpenPAI: starts a deployed run again, as a separate job."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from click.testing import CliRunner, Result

from components.openpai.client.jobs import Job
from components.openpai.plan import openpai_plan
from components.openpai.run_inputs import openpai_run_inputs, read_files
from components.plan.build import plan_of
from components.platform.calls import call_of
from components.platform.values import Properties
from schemas.judge import judge_file
from tests.support.openpai_runs import RUN, RunsWorld, runs_world
from trainyard.cli.main import main

STACK = "vision-dev"
JOB = """
      framework: pytorch
      image: "example.com/team/torch:1.0"
      shape: small
      roles: { main: 1, worker: 1 }
      command: train.py --epochs 5
      maximumRuntimeMinutes: 60
      env: { COLOUR: red }
      code: ./code
"""
AS_IS = JOB.replace("command: ", "start: as-is\n      command: python ")
FILE = f"""\
config:
  trainyard:team: vision
  trainyard:environment: dev
  trainyard:platform: openpai
  trainyard:cluster: {{ uri: "URI", user: deployer }}
  trainyard:skus: {{ small: {{ cpus: 1, memoryGb: 1 }} }}
  trainyard:storage: {{ name: results }}
  trainyard:jobs:
    tried:{JOB}      runs: {{ base: {{ args: [--lr, "0.1"] }} }}
    idle:{JOB}
    secretive:{JOB}      runs: {{ base: {{}} }}
    untouched:{AS_IS}      runs: {{ base: {{}} }}
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunsWorld]:
    with runs_world(tmp_path_factory.mktemp("openpai") / "cloud") as made:
        (made.cloud.home / "storages" / "results").mkdir(parents=True)
        with patch.dict(os.environ, made.cloud.env_for("deployer")):
            yield made


@pytest.fixture
def file(world: RunsWorld, tmp_path: Path) -> Path:
    path = tmp_path / f"Pulumi.{STACK}.yaml"
    _write(path, world)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text("import signal\nsignal.pause()\n")
    return path


def _write(path: Path, world: RunsWorld, *changes: tuple[str, str]) -> None:
    text = FILE.replace("URI", world.cloud.endpoint)
    for before, after in changes:
        text = text.replace(before, after)
    path.write_text(text)


def _trainyard(file: Path, *words: str) -> Result:
    return _command("run", file, *words)


def _command(name: str, file: Path, *words: str, group: str = "") -> Result:
    line = [*filter(None, (group, name)), STACK, "--stacks", str(file.parent), *words]
    return CliRunner().invoke(main, line, catch_exceptions=False)


def _deployed(file: Path, name: str) -> Properties:
    plan = openpai_plan(plan_of(judge_file(file)))
    job = plan.jobs[name]
    inputs = openpai_run_inputs(plan, job, job.runs["base"], read_files(plan, job, file.parent), lambda text: text)
    return {**inputs, "until": "accepted"}


def _jobs(world: RunsWorld) -> dict[str, Job]:
    made = world.platform().runs_of(call_of("test", lambda line: None), "deployer")
    return {job.title: job for job in made}


def _commands(job: Job) -> str:
    return "\n".join(job.content["taskRoles"]["main"]["commands"])


def test_a_try_is_the_deployed_run_with_other_arguments_and_ends_with_it(world: RunsWorld, file: Path) -> None:
    early = _trainyard(file, "tried", "--", "--lr", "0.5")
    assert early.exit_code == 1
    assert "tried/base is not deployed" in early.output
    base = world.engine.create(RUN, "base", _deployed(file, "tried"))
    started = _trainyard(file, "tried", "--name", "quick", "--env", "COLOUR=green", "--", "--lr", "0.5")
    assert started.exit_code == 0, started.output
    jobs = _jobs(world)
    first, second = jobs["tried/base"], jobs["tried/try-quick"]
    assert second.fingerprint.startswith("try/base/")
    assert [text for text in ("COLOUR=red", "COLOUR=green") if text in _commands(second)] == ["COLOUR=green"]
    assert '"0.5"' in _commands(second)
    unpacked = [text for text in first.content["taskRoles"]["main"]["commands"] if "TRAINYARD_CODE" in text]
    assert unpacked[0] in _commands(second), "the code that is deployed"
    assert second.folder == f"{str(first.folder).removesuffix('tried/base/1')}tried/try-quick/1"

    again = _trainyard(file, "tried", "--name", "quick")
    assert "there was a try tried/try-quick already" in again.output
    _write(file, world, ("epochs 5", "epochs 6"), (":1.0", ":2.0"))
    changed = _trainyard(file, "tried", "--env", "COLOUR=blue")
    assert changed.exit_code == 1
    assert "command" in changed.output
    assert "image" in changed.output
    anyway = _trainyard(file, "tried", "--name", "anyway", "--env", "COLOUR=blue", "--anyway")
    assert anyway.exit_code == 0, anyway.output
    third = _jobs(world)["tried/try-anyway"]
    assert '"5"' in _commands(third)
    assert third.content["prerequisites"][0]["uri"].endswith(":1.0")

    world.engine.delete(base)
    assert "its tries end with it: tried/try-anyway, tried/try-quick" in world.engine.heard.everything


def test_arguments_of_a_try_are_appended_to_an_as_is_command(world: RunsWorld, file: Path) -> None:
    base = world.engine.create(RUN, "base", _deployed(file, "untouched"))
    started = _trainyard(file, "untouched", "--name", "quick", "--env", "COLOUR=green", "--", "--lr", "a b")
    assert started.exit_code == 0, started.output
    commands = _commands(_jobs(world)["untouched/try-quick"])
    assert "\npython train.py --epochs 5 --lr 'a b'\n" in commands
    assert "COLOUR=green" in commands
    assert "COLOUR=red" not in commands
    _write(file, world, ("epochs 5", "epochs 6"))
    changed = _trainyard(file, "untouched", "--env", "COLOUR=blue")
    assert changed.exit_code == 1
    assert "command" in changed.output.replace("commands", "")
    world.engine.delete(base)
    assert "its tries end with it: untouched/try-quick" in world.engine.heard.everything


def test_a_try_of_a_job_without_runs_uses_the_plan(world: RunsWorld, file: Path) -> None:
    started = _trainyard(file, "idle", "--name", "first", "--", "--lr", "0.5")
    assert started.exit_code == 0, started.output
    job = _jobs(world)["idle/try-first"]
    assert '"0.5"' in _commands(job)
    seen = _command("list", file, "idle", group="runs")
    assert "idle/try-first" in seen.output
    stopped = _command("cancel", file, "idle/try-first", "--yes", group="runs")
    assert stopped.exit_code == 0, stopped.output
    watched = _command("watch", file, "idle/try-first", "--every", "0.1", group="runs")
    assert watched.exit_code == 1
    assert "CANCELED" in watched.output
    outputs = _command("outputs", file, "idle/try-first", group="runs")
    assert "the storage results of the cluster" in outputs.output
    moved = _command("list", file, group="data")
    assert "the storage results of the cluster" in moved.output


def test_a_try_of_a_job_with_secrets_is_refused(world: RunsWorld, file: Path) -> None:
    _write(file, world, ("env: { COLOUR: red }", "env: { COLOUR: red, API_TOKEN: { secure: sealed } }"))
    refused = _trainyard(file, "secretive", "--env", "COLOUR=blue")
    assert refused.exit_code == 1
    assert "secrets (API_TOKEN), which a try cannot bring" in " ".join(refused.output.split())
