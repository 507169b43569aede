# SPDX-License-Identifier: Apache-2.0
"""`trainyard runs` on AWS DL1: runs, machines, logs and cancelling."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from components.platform.client import Where
from components.platform.status import WantedRuns
from schemas.source import read_source
from tests.support.aws_cluster import GROUP, STACK, AwsWorld, aws_world
from tests.support.waiting import eventually
from trainyard.cli.main import main
from trainyard.runs.run_looks import runs_now
from trainyard.why.judge import known_cause

RUN = "trainyard:index:Run"
FILE = """\
config:
  aws:region: us-east-1
  trainyard:team: vision
  trainyard:environment: dev
  trainyard:platform: aws-dl1
  trainyard:jobs:
    seen: { framework: pytorch, image: "${registry}:1.0", shape: dl1.24xlarge, roles: { main: 2 }, command: train.py }
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsWorld]:
    with aws_world(tmp_path_factory.mktemp("aws")) as made:
        yield made


@pytest.fixture
def stacks(tmp_path: Path) -> Path:
    (tmp_path / f"Pulumi.{STACK}.yaml").write_text(FILE)
    return tmp_path


def trainyard(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)


def test_runs_and_machines_are_shown_with_their_lines_and_can_be_ended(world: AwsWorld, stacks: Path) -> None:
    with world.cluster("seen") as cluster:
        cluster.ends["first"] = "SUCCEEDED"
        first = world.engine.create(RUN, "first", cluster.run("first"))
        going = world.engine.create(RUN, "second", cluster.run("second", until="started"))
        waiting = world.engine.create(RUN, "third", cluster.run("third", until="accepted"))
        status = {"rank": 0, "state": "running", "progress": {"epoch": 3}}
        world.write("seen/second/1/s00000002/status/0.json", status)
        now = int(datetime.now(UTC).timestamp() * 1000)
        for node, text in (("main-0", "one"), ("worker-0", "two \x1b[2J")):
            stream = f"{STACK}/seen/second/s00000002/{node}"
            world["logs"].create_log_stream(logGroupName=GROUP, logStreamName=stream)
            event = {"timestamp": now, "message": f"[{node}] {text}"}
            world["logs"].put_log_events(logGroupName=GROUP, logStreamName=stream, logEvents=[event])

        # The outputs of an `up` that waited only until both runs were in the queue.
        accepted = {
            name: {"state": "ACCEPTED", "nodes": [{"id": made.id, "name": "main-0", "state": "ACCEPTED"}]}
            for name, made in {"first": first, "second": going, "gone": replace(going, id="gone")}.items()
        }
        config = read_source(stacks / f"Pulumi.{STACK}.yaml").data["config"]
        where = Where(config, None, None, print, bucket=lambda: world.bucket)
        renewed = runs_now({"jobs": {"seen": {"runs": accepted}}}, where, WantedRuns(STACK), known_cause)
        assert [(name, report["state"], report["nodes"][0]["state"]) for _, name, report in renewed] == [
            ("first", "SUCCEEDED", "SUCCEEDED"), ("second", "IN_PROGRESS", "IN_PROGRESS"),
            ("gone", "ACCEPTED", "ACCEPTED"),
        ]  # fmt: skip

        shown = trainyard("runs", STACK, "--stacks", stacks)
        assert shown.exit_code == 0, shown.output
        lines = {title: rest for title, *rest in map(str.split, shown.output.splitlines()) if title.startswith("seen/")}
        assert lines["seen/first"][0] == "SUCCEEDED"
        assert lines["seen/second"][0] == "IN_PROGRESS"
        assert lines["seen/second"][-2:] == ["epoch", "3"]
        assert "waits for run second (s00000002) on seen" in shown.output
        assert "machines, 2 of 2 up:" in shown.output
        assert f"{cluster.instances['main-0']}  ready  up for" in shown.output

        only = trainyard("runs", STACK, "seen/second", "--stacks", stacks, "--format", "json")
        (run,) = json.loads(only.stdout)
        assert (run["state"], [node["node"] for node in run["nodes"]]) == ("IN_PROGRESS", ["main-0", "worker-0"])
        assert [(one["node"], one["id"], one["state"], one["doing"], one["up"]) for one in run["machines"]] == [
            (name, cluster.instances[name], "running", "ready", True) for name in ("main-0", "worker-0")
        ]
        up_for = datetime.now(UTC) - datetime.fromisoformat(run["machines"][0]["since"])
        assert 0 <= up_for.total_seconds() < 600

        printed = trainyard("runs", "logs", STACK, "seen/second", "--stacks", stacks)
        assert sorted(printed.output.splitlines())[0] == "[0 main-0] one"
        assert "\x1b" not in printed.output

        for run in (going, waiting):
            name = "second" if run is going else "third"
            ended = trainyard("runs", "cancel", STACK, f"seen/{name}", "--yes", "--stacks", stacks)
            assert f"Asked to end: seen/{name}" in ended.output
        watched = trainyard("runs", "watch", STACK, "--every", "0.1", "--stacks", stacks)
        assert watched.exit_code == 1
        assert "CANCELED" in watched.output

        cluster.sick["worker-0"] = "no EFA device is there"
        eventually(
            lambda: trainyard("runs", STACK, "--stacks", stacks).output,
            lambda text: "failed  up for" in text and "no EFA device is there" in text,
        )
        world["ec2"].stop_instances(InstanceIds=list(cluster.instances.values()))
        assert "machines, 0 of 2 up:" in trainyard("runs", STACK, "--stacks", stacks).output
        stopped = json.loads(trainyard("runs", STACK, "--stacks", stacks, "--format", "json").stdout)
        assert {(one["up"], one["since"]) for run in stopped for one in run["machines"]} == {(False, None)}


def test_an_invalid_ticket_hides_no_other_run(world: AwsWorld, stacks: Path) -> None:
    """Users with access to the bucket may write any content there."""
    node = {"name": "main-0", "rank": 0, "environment": "none"}
    tags: dict[str, object] = {"stack": STACK, "job": "odd", "run": "first"}
    ticket = {"version": 1, "tags": tags, "nodes": [node], "region": ["x"]}
    folder = {**node, "environment": {"TRAINYARD_LAUNCH": json.dumps({"folder": "s3://b/\ud800"})}}
    written = [ticket, {**ticket, "tags": {**tags, "run": {}}}, {**ticket, "nodes": [folder]}]
    written.append({**ticket, "nodes": [{"name": "\ud800"}]})
    for number, content in enumerate(written, 1):
        world.write(f".trainyard/clusters/odd/queue/{number:08}.json", content)
    world.write(".trainyard/clusters/odd/starts/00000003/main-0.json", {"state": []})
    shown = trainyard("runs", STACK, "--history", "--stacks", stacks)
    assert shown.exit_code == 0, shown.output
    assert shown.output.count("odd/first  ") == 2, shown.output


def test_machines_that_wait_for_their_first_run_are_shown(world: AwsWorld, stacks: Path) -> None:
    with world.cluster("early", "main-0") as cluster:
        eventually(lambda: world.keys(".trainyard/clusters/early/nodes/"), bool)
        shown = trainyard("runs", STACK, "early", "--stacks", stacks)
        assert "No runs early of the stack vision-dev" in shown.output
        assert "machines, 1 of 1 up:" in shown.output
        assert cluster.instances["main-0"] in shown.output
        runs = trainyard("runs", STACK, "early", "--stacks", stacks, "--format", "json")
        assert json.loads(runs.stdout) == []
        assert cluster.instances["main-0"] in runs.stderr


def test_a_run_ended_by_its_limit_names_the_limit_not_the_signal(world: AwsWorld, stacks: Path) -> None:
    """The machine enforces the limit and reports it. The launcher in the container only knows that it was told to
    end."""
    names, limit = ("main-0", "worker-0"), "the maximum runtime of 1 minutes is over"
    folder = json.dumps({"folder": f"s3://{world.bucket}/limited/first/1"})
    nodes = [
        {"name": name, "rank": rank, "environment": {"TRAINYARD_LAUNCH": folder}} for rank, name in enumerate(names)
    ]
    tags = {"stack": STACK, "job": "limited", "run": "first"}
    ticket = {"version": 1, "tags": tags, "region": "us-east-1", "stack": STACK, "nodes": nodes}
    world.write(".trainyard/clusters/limited/queue/00000001.json", ticket)
    for rank, name in enumerate(names):
        state = {"state": "FAILED", "details": limit}
        world.write(f".trainyard/clusters/limited/starts/00000001/{name}.json", state)
        status = {"rank": rank, "state": "failed", "code": 143, "reason": "was asked to end by SIGTERM (code 143)"}
        world.write(f"limited/first/1/s00000001/status/{rank}.json", status)
    shown = trainyard("runs", STACK, "limited/first", "--stacks", stacks).output
    assert "limited/first: FAILED" in shown
    assert "SIGTERM" not in shown, shown
    assert shown.count(limit) == 3, "for the run and each of its ranks"
    failed = trainyard("runs", STACK, "--failed", "--stacks", stacks).output
    assert failed.count(limit) == 1, "one line a run"


_TAGS = {"stack": STACK, "job": "forged", "run": "x"}
_NODE = {"name": "main-0", "role": "main", "rank": 0}
# Hostile tickets by users with access to the bucket, and hostile node states by training.
_FORGED: list[dict[str, object]] = [
    {"tags": {**_TAGS, "run": ["x"]}}, {"tags": {**_TAGS, "run": "\x1b[2J\u202e" + "x" * 99_999}},
    {"region": ["us-east-1"]}, {"region": "us-east-1.evil.example"}, {"createdAt": "9999-12-31T23:59:59-23:59"},
    {"nodes": [{**_NODE, "environment": "text"}]}, {"nodes": [{**_NODE, "name": "a/b"}]}, {"logGroup": {"a": 1}},
]  # fmt: skip
_STATES = ['{"state": ["FAILED"]}', '{"state": "FAILED", "code": 1e999}', "[" * 9999, '{"state": {"a": NaN}}']


def test_runs_are_shown_despite_hostile_objects_in_the_bucket(world: AwsWorld, stacks: Path) -> None:
    folder = ".trainyard/clusters/forged"
    for number, content in enumerate([*_FORGED, *({} for _ in _STATES)], 1):
        tags = {**_TAGS, "run": f"run-{number}"}
        ticket = {"version": 1, "tags": tags, "region": "us-east-1", "stack": STACK, "nodes": [_NODE], **content}
        world.write(f"{folder}/queue/{number:08}.json", ticket)
        if number > len(_FORGED):
            key, body = f"{folder}/starts/{number:08}/main-0.json", _STATES[number - len(_FORGED) - 1]
            world["s3"].put_object(Bucket=world.bucket, Key=key, Body=body)
    shown = trainyard("runs", STACK, "forged", "--stacks", stacks)
    assert "forged/run-9  " in shown.output
    assert not {"\x1b", "\u202e"} & set(shown.output)
    assert len(shown.output) < 20_000
    rows = json.loads(trainyard("runs", STACK, "forged", "--stacks", stacks, "--format", "json").stdout)
    assert len(rows) == 11, "one ticket has a node that is none"


def test_a_missing_bucket_is_reported(world: AwsWorld, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.other.yaml").write_text(FILE.replace("vision", "sound"))
    shown = trainyard("runs", "other", "--stacks", tmp_path)
    assert shown.exit_code == 1
    assert "NoSuchBucket" in shown.output
