# SPDX-License-Identifier: Apache-2.0
"""`trainyard run` on AWS DL1: starts a deployed run again, as a ticket in the same queue."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from components.aws.plan import aws_dl1_plan
from components.aws.run_inputs import aws_run_inputs
from components.plan.build import plan_of
from components.platform.tries import PlanFiller
from schemas.judge import judge_file
from tests.support.aws_cluster import GROUP, STACK, AwsWorld, aws_world
from trainyard.cli.main import main

RUN = "trainyard:index:Run"
JOB = """
      framework: pytorch
      image: "${registry}:1.0"
      shape: dl1.24xlarge
      roles: { main: 1, worker: 1 }
      command: train.py --epochs 5
      maximumRuntimeMinutes: 60
      env: { COLOUR: red }
      options: { processes: 8 }
      cluster: { ami: ami-12c6146b }
"""
FILE = f"""\
config:
  aws:region: us-east-1
  trainyard:team: vision
  trainyard:environment: dev
  trainyard:platform: aws-dl1
  trainyard:access: {{ users: {{ group: scientists }} }}
  trainyard:jobs:
    tried:{JOB}      runs: {{ base: {{ args: [--lr, "0.1"] }} }}
    idle:{JOB}      code: ./code
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsWorld]:
    with aws_world(tmp_path_factory.mktemp("aws")) as made:
        yield made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / f"Pulumi.{STACK}.yaml"
    path.write_text(FILE)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text("print('trains')\n")
    return path


def trainyard(file: Path, *words: str) -> Result:
    line = ["run", STACK, "--stacks", str(file.parent), *words]
    return CliRunner().invoke(main, line, catch_exceptions=False)


def _deployed(world: AwsWorld, file: Path) -> dict[str, Any]:
    plan = aws_dl1_plan(plan_of(judge_file(file)))
    job = plan.jobs["tried"]
    account = world["sts"].get_caller_identity()["Account"]
    registry = f"{account}.dkr.ecr.us-east-1.amazonaws.com/{plan.registry.repository}"
    filler = PlanFiller({"bucket": f"s3://{world.bucket}", "registry": registry})
    where = {"bucket": world.bucket, "logGroup": GROUP, "secret": "tried/base"}
    waits = {"access": 0.01, "started": 5, "finished": 5}
    return {**aws_run_inputs(plan, job, job.runs["base"], where, filler), "until": "accepted", "timeouts": waits}


def test_a_try_is_the_deployed_run_with_other_arguments_and_ends_with_it(world: AwsWorld, file: Path) -> None:
    with world.cluster("tried", "main-0", "worker-0") as cluster:
        early = trainyard(file, "tried", "--", "--lr", "0.5")
        assert early.exit_code == 1
        assert "tried/base is not deployed" in early.output
        deployed = _deployed(world, file)
        base = world.engine.create(RUN, "base", deployed)
        started = trainyard(file, "tried", "--name", "quick", "--env", "COLOUR=green", "--", "--lr", "0.5")
        assert started.exit_code == 0, started.output
        first, second = cluster.tickets()
        assert second["tags"]["run"] == "try-quick"
        assert second["fingerprint"].startswith("try/base/")
        assert second["secret"] == "tried/base"
        assert [node["environment"]["COLOUR"] for node in (*first["nodes"], *second["nodes"])] == [
            *("red", "red"), *("green", "green"),
        ]  # fmt: skip
        launches = [json.loads(ticket["nodes"][0]["environment"]["TRAINYARD_LAUNCH"]) for ticket in (first, second)]
        assert [launch["command"][-1] for launch in launches] == ["0.1", "0.5"]
        assert launches[1]["folder"] == f"s3://{world.bucket}/tried/try-quick/1"

        again = trainyard(file, "tried", "--name", "quick")
        assert "there was a try tried/try-quick already" in again.output
        secret = trainyard(file, "tried", "--env", "API_TOKEN=hush")
        assert "`API_TOKEN` is a secret, which a try cannot bring" in secret.output
        file.write_text(FILE.replace("epochs 5", "epochs 6").replace(":1.0", ":2.0"))
        changed = trainyard(file, "tried", "--env", "COLOUR=blue")
        assert changed.exit_code == 1
        assert "command" in changed.output
        assert "image" in changed.output
        assert len(cluster.tickets()) == 2

        world.engine.delete(base)
        assert "its tries end with it: tried/try-quick" in world.engine.heard.everything
        assert world.keys(".trainyard/clusters/tried/starts/00000002/cancel")


def test_a_try_of_a_job_without_runs_uses_the_plan(world: AwsWorld, file: Path) -> None:
    older, newer = (f".trainyard/code/idle-{digest * 16}.tar.gz" for digest in "bc")
    for key in (older, newer, f".trainyard/code/idle-other-{'a' * 16}.tar.gz"):
        world["s3"].put_object(Bucket=world.bucket, Key=key, Body=b"an archive")
    with world.cluster("idle", "main-0", "worker-0") as cluster:
        started = trainyard(file, "idle", "--name", "first", "--", "--lr", "0.5")
        assert started.exit_code == 0, started.output
        (ticket,) = cluster.tickets()
        assert ticket["image"].endswith(":1.0")
        assert "secret" not in ticket
        assert ticket["code"] == newer, "the archive of the last `up`, and of this job"
