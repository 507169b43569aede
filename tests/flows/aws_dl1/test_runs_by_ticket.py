# SPDX-License-Identifier: Apache-2.0
"""`trainyard:index:Run` on a cluster of AWS DL1, through the provider protocol: tickets, waits, ends and losses."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import pytest

from components.aws.client import machines
from provider.runs.starting import RETRY_FAILED
from tests.support.aws_cluster import GROUP, STACK, AwsWorld, aws_engine, aws_world
from tests.support.provider_client import Failed
from tests.support.waiting import eventually

RUN = "trainyard:index:Run"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsWorld]:
    with aws_world(tmp_path_factory.mktemp("aws")) as made:
        yield made


def test_a_run_runs_to_its_end_and_the_second_up_changes_nothing(world: AwsWorld) -> None:
    with world.cluster("whole") as cluster:
        cluster.ends["base"] = "SUCCEEDED"
        made = world.engine.create(RUN, "whole", cluster.run())
        assert made.id == f"aws-dl1/{world.bucket}/whole/00000001/main-0"
        assert made.outputs["state"] == "SUCCEEDED"
        assert [node["name"] for node in made.outputs["nodeRuns"]] == ["main-0", "worker-0"]
        assert not world.engine.diff(made, cluster.run()).replaces
        (ticket,) = cluster.tickets()
        assert (ticket["number"], ticket["start"], ticket["run"]) == (1, "s00000001", "base")
        assert "released" not in ticket
        refreshed = world.engine.refresh(made)
        assert refreshed is not None
        assert refreshed.outputs == made.outputs
        imported = world.engine.import_(RUN, "whole", made.id)
        assert imported is not None
        assert imported.inputs["cluster"] == cluster.inputs
        assert imported.inputs["nodes"][1]["name"] == "worker-0"
        world.engine.delete(made)
        assert cluster.tickets()[0]["released"] is True


def _beside(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Runs a function on another thread. The list gets its result."""
    results: list[Any] = []

    def go() -> None:
        try:
            results.append(work())
        except Failed as failed:
            results.append(failed)

    thread = threading.Thread(target=go)
    thread.start()
    return thread, results


def _heard(world: AwsWorld, text: str) -> bool:
    return text in world.engine.heard.everything


def test_a_run_waits_visibly_for_the_previous_one(world: AwsWorld) -> None:
    with world.cluster("queue") as cluster:
        first = world.engine.create(RUN, "first", cluster.run("first", until="started"))
        cluster.ends["second"] = "SUCCEEDED"
        thread, results = _beside(lambda: world.engine.create(RUN, "second", cluster.run("second")))
        eventually(lambda: _heard(world, "waits for run first (s00000001) on queue"), bool)
        assert cluster.tickets()[1]["start"] == "s00000002"
        cluster.ends["first"] = "SUCCEEDED"
        thread.join(60)
        assert results[0].outputs["state"] == "SUCCEEDED"
        assert first.outputs["state"] == "IN_PROGRESS"


def test_concurrent_starts_get_different_numbers(world: AwsWorld) -> None:
    with world.cluster("race", "main") as cluster:
        cluster.begins.clear()
        wanted = [f"r{number}" for number in range(6)]
        with ThreadPoolExecutor(len(wanted)) as pool:
            create = lambda name: world.engine.create(RUN, f"race-{name}", cluster.run(name, until="accepted"))  # noqa: E731
            made = list(pool.map(create, wanted))
        assert len({one.id for one in made}) == len(wanted)
        assert sorted(ticket["number"] for ticket in cluster.tickets()) == [1, 2, 3, 4, 5, 6]
        assert sorted(ticket["run"] for ticket in cluster.tickets()) == wanted


def test_stopped_instances_are_started_again_with_a_message(world: AwsWorld) -> None:
    with world.cluster("stopped") as cluster:
        cluster.ends["base"] = "SUCCEEDED"
        world["ec2"].stop_instances(InstanceIds=[cluster.instances["worker-0"]])
        assert world.engine.create(RUN, "stopped", cluster.run()).outputs["state"] == "SUCCEEDED"
        assert _heard(world, f"starting stopped instances again: worker-0 ({cluster.instances['worker-0']})")


def test_an_unfit_node_ends_the_wait_with_its_reason(world: AwsWorld) -> None:
    with world.cluster("sick") as cluster:
        cluster.sick["worker-0"] = "no EFA device is there"
        with pytest.raises(Failed, match=r"node worker-0 cannot work: no EFA device is there") as failed:
            world.engine.create(RUN, "sick", cluster.run())
        assert failed.value.kept is None
        assert cluster.tickets() == []


def test_a_machine_that_never_answers_ends_the_wait_after_the_timeout(world: AwsWorld) -> None:
    with world.cluster("deaf") as cluster:
        cluster.deaf.add("main-0")
        inputs = cluster.run(timeouts={"access": 0.01, "started": 0.03, "finished": 1})
        with pytest.raises(Failed, match=r"0\.03 minutes the nodes of deaf are not ready: main-0 booting"):
            world.engine.create(RUN, "deaf", inputs)


def test_a_silent_machine_is_named_before_the_timeout_of_the_start(
    world: AwsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machines, "_SECONDS_UNTIL_HEARD", 0.5)
    with world.cluster("silent") as cluster:
        cluster.deaf.add("worker-0")
        with pytest.raises(Failed) as failed:
            world.engine.create(RUN, "silent", cluster.run(timeouts={"access": 0.01, "started": 30, "finished": 1}))
        instance = cluster.instances["worker-0"]
        assert f"The node worker-0 (instance {instance}) is running, but has not reported for" in str(failed.value)
        wanted = f"aws ec2 get-console-output --latest --output text --region us-east-1 --instance-id {instance}"
        assert wanted in str(failed.value)
        assert "no Python 3.7 or newer" in str(failed.value)
        assert cluster.tickets() == []


def test_a_create_that_was_killed_finds_its_ticket(world: AwsWorld) -> None:
    """The provider is killed after the ticket, before or after the wake command. The engine has no state of it, so it
    creates the run again."""
    with world.cluster("killed") as cluster:
        cluster.ends["base"] = "SUCCEEDED"
        first = world.engine.create(RUN, "killed", cluster.run())
        again = world.engine.create(RUN, "killed", cluster.run())
        assert again.id == first.id
        assert len(cluster.tickets()) == 1
        assert _heard(world, "had put the ticket s00000001 already")


def test_a_replaced_run_ends_first_and_its_ticket_is_history(world: AwsWorld) -> None:
    with world.cluster("replaced") as cluster:
        first = world.engine.create(RUN, "replaced", cluster.run(until="started"))
        changed = cluster.run(until="started", attempt=2)
        assert list(world.engine.diff(first, changed).replaces) == ["attempt"]
        assert world.engine.diff(first, changed).deleteBeforeReplace
        world.engine.delete(first)
        second = world.engine.create(RUN, "replaced", changed)
        assert second.id.endswith("/00000002/main-0")
        same = world.engine.create(RUN, "other", cluster.run("other", until="accepted"))
        world.engine.delete(same)
        world.engine.delete(second)
        assert [ticket["released"] for ticket in cluster.tickets()] == [True, True, True]


def test_a_waiting_run_is_cancelled_before_it_begins(world: AwsWorld) -> None:
    with world.cluster("waiting") as cluster:
        first = world.engine.create(RUN, "one", cluster.run("one", until="started"))
        second = world.engine.create(RUN, "two", cluster.run("two", until="accepted"))
        world["ec2"].stop_instances(InstanceIds=list(cluster.instances.values()))
        world.engine.delete(second)
        lost = world.engine.refresh(first)
        assert lost is not None
        assert lost.outputs["state"] == "FAILED"
        assert "is stopped" in lost.outputs["nodeRuns"][0]["details"]
        world.engine.delete(first)


def test_after_ctrl_c_during_the_wait_the_next_up_continues_the_run(world: AwsWorld) -> None:
    with world.cluster("interrupted") as cluster, aws_engine() as engine:
        cluster.begins.clear()
        thread, results = _beside(lambda: engine.create(RUN, "interrupted", cluster.run()))
        eventually(lambda: "ACCEPTED" in engine.heard.everything, bool)
        engine.cancel()
        thread.join(30)
        assert "Stopped waiting for the run interrupted-base" in str(results[0])
        cluster.begins.set()
        cluster.ends["base"] = "SUCCEEDED"
        assert world.engine.update(results[0].kept, cluster.run()).outputs["state"] == "SUCCEEDED"
        assert len(cluster.tickets()) == 1


def test_an_instance_that_somebody_terminates_is_a_failure_with_its_name(world: AwsWorld) -> None:
    with world.cluster("terminated") as cluster:
        made = world.engine.create(RUN, "terminated", cluster.run(until="started"))
        gone = cluster.instances["worker-0"]
        cluster.deaf.add("worker-0")
        world["ec2"].terminate_instances(InstanceIds=[gone])
        refreshed = world.engine.refresh(made)
        assert refreshed is not None
        assert refreshed.outputs["state"] == "FAILED"
        assert (
            f"its instance {gone} is terminated (Client.UserInitiatedShutdown"
            in refreshed.outputs["nodeRuns"][1]["details"]
        )
        with pytest.raises(Failed, match=rf"worker-0 cannot work: its instance {gone} is terminated.*\n.*--refresh"):
            world.engine.create(RUN, "next", cluster.run("next"))
        # The start that the old instance lost stays lost when the node gets a new instance.
        cluster.launch("worker-0")
        again = world.engine.refresh(made)
        assert again is not None
        assert f"its instance {gone} was replaced while it ran" in again.outputs["nodeRuns"][1]["details"]


def test_an_instance_that_is_replaced_after_the_end_changes_nothing(world: AwsWorld) -> None:
    with world.cluster("later") as cluster:
        cluster.ends["base"] = "SUCCEEDED"
        made = world.engine.create(RUN, "later", cluster.run())
        world["ec2"].terminate_instances(InstanceIds=[cluster.instances["main-0"]])
        cluster.launch("main-0")
        refreshed = world.engine.refresh(made)
        assert refreshed is not None
        assert refreshed.outputs["state"] == "SUCCEEDED"


def test_a_failed_run_shows_its_last_lines(world: AwsWorld) -> None:
    with world.cluster("failing", "main-0") as cluster:
        stream = f"{STACK}/failing/base/s00000001/main-0"
        world["logs"].create_log_stream(logGroupName=GROUP, logStreamName=stream)
        now = int(datetime.now(UTC).timestamp() * 1000)
        lines = [{"timestamp": now + number, "message": f"line {number} \x1b[2J"} for number in range(30)]
        world["logs"].put_log_events(logGroupName=GROUP, logStreamName=stream, logEvents=lines)
        cluster.ends["base"] = "FAILED"
        with pytest.raises(Failed, match=r"is FAILED: node main-0: exit code 1") as failed:
            world.engine.create(RUN, "failing", cluster.run())
        assert "line 29" in str(failed.value)
        assert "line 9 " not in str(failed.value)
        assert "\x1b" not in str(failed.value)

        kept = failed.value.kept
        assert kept is not None
        assert not world.engine.diff(kept, cluster.run()).replaces
        with patch.dict(os.environ, {RETRY_FAILED: "1"}):
            assert list(world.engine.diff(kept, cluster.run()).replaces) == ["state"]
        world.engine.delete(kept)
        cluster.ends["base"] = "SUCCEEDED"
        assert world.engine.create(RUN, "failing", cluster.run()).id.endswith("/00000002/main-0")


def test_a_renamed_run_keeps_its_ticket(world: AwsWorld) -> None:
    with world.cluster("renamed") as cluster:
        cluster.ends["base"] = "SUCCEEDED"
        made = world.engine.create(RUN, "renamed", cluster.run())
        tags = {**cluster.run()["tags"], "run": "better"}
        renamed = world.engine.update(made, cluster.run(displayName="better", tags=tags))
        (ticket,) = cluster.tickets()
        assert (ticket["displayName"], ticket["tags"]["run"], ticket["run"]) == ("better", "better", "base")
        assert renamed.outputs["state"] == "SUCCEEDED"


def test_after_its_ticket_was_deleted_a_run_keeps_the_state(world: AwsWorld) -> None:
    with world.cluster("forgotten") as cluster:
        cluster.ends["base"] = "SUCCEEDED"
        made = world.engine.create(RUN, "forgotten", cluster.run())
        world["s3"].delete_object(Bucket=world.bucket, Key=world.keys(".trainyard/clusters/forgotten/queue/")[0])
        refreshed = world.engine.refresh(made)
        assert refreshed is not None
        assert refreshed.outputs["state"] == "SUCCEEDED"
        world.engine.delete(made)


def test_a_deleted_bucket_is_reported(world: AwsWorld) -> None:
    with world.cluster("homeless", "main") as cluster:
        inputs = cluster.run()
        inputs["cluster"] = {**inputs["cluster"], "bucket": "nobody-made-this"}
        with pytest.raises(Failed, match=r"NoSuchBucket.*\n?.*Somebody removed the bucket"):
            world.engine.create(RUN, "homeless", inputs)


@pytest.mark.parametrize(
    ("cluster", "says"),
    [
        ("c", "cluster: This is an object: bucket, job, region, stack, logGroup, secret, code, launcher."),
        ({"bucket": "b", "job": "j", "region": "r", "logGroup": "l"}, "cluster.stack: `stack` is missing."),
        (None, "cluster: `cluster` is missing."),
    ],
)
def test_an_invalid_cluster_input_is_named(world: AwsWorld, cluster: Any, says: str) -> None:
    inputs = {"platform": "aws-dl1", "displayName": "r", "nodes": [{"name": "main"}], "cluster": cluster}
    assert world.engine.check(RUN, "wrong", inputs)[1] == [says]


def test_inputs_of_another_platform_are_refused(world: AwsWorld) -> None:
    cluster = {"bucket": "b", "job": "j", "region": "r", "stack": "s", "logGroup": "g"}
    inputs = {
        "platform": "aws-dl1", "displayName": "r", "cluster": cluster, "project": "p",
        "nodes": [{"name": "main", "replicas": 2}],
    }  # fmt: skip
    assert [line.partition(";")[0] for line in world.engine.check(RUN, "wrong", inputs)[1]] == [
        "project: A run has no input `project`",
        "nodes[0].replicas: A node has no `replicas`",
    ]
