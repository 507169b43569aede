# SPDX-License-Identifier: Apache-2.0
"""A call saves only what it changed, and a refused call changes nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from localcloud.aws import kept
from localcloud.aws.additions import log_filters
from tests.support.aws_inside import AwsInside, aws_inside

NAMED = {"logGroupName": "/runs"}
ACCOUNT = "123456789012"


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[tuple[AwsInside, Any]]:
    with aws_inside(tmp_path) as inside:
        client = inside.client(inside.deployer, "logs")
        client.create_log_group(**NAMED)
        yield inside, client


def put(client: Any, stream: str, *messages: str) -> None:
    now = int(time.time() * 1000)
    events = [{"timestamp": now + number, "message": text} for number, text in enumerate(messages)]
    client.put_log_events(**NAMED, logStreamName=stream, logEvents=events)


def read(client: Any, stream: str) -> list[str]:
    page = client.get_log_events(**NAMED, logStreamName=stream, startFromHead=True, limit=10_000)
    return [event["message"] for event in page["events"]]


def test_a_call_compares_only_the_backends_that_it_used(logs: tuple[AwsInside, Any]) -> None:
    """80,000 events once made every other call take seconds."""
    inside, client = logs
    client.create_log_stream(**NAMED, logStreamName="a")
    put(client, "a", *("x" for _ in range(5_000)))
    pickled: list[int] = []
    original = kept._pickled

    def counted(value: Any, save_content: Any) -> bytes:
        state = original(value, save_content)
        pickled.append(len(state))
        return state

    with patch.object(kept, "_pickled", counted):
        inside.ask(inside.deployer, "ssm", "PutParameter", Name="p", Value="v", Type="String")
        assert ("logs", "us-east-1") not in kept.used_backends
        assert len(pickled) <= 2
        pickled.clear()
        put(client, "a", "one more")
        assert max(pickled) < 150_000, "events are not written again"


def test_events_survive_a_kill_up_to_their_limit(tmp_path: Path) -> None:
    few = patch.multiple(log_filters, EVENTS_OF_STREAM=6, EVENTS_OF_GROUP=8)
    with few, aws_inside(tmp_path) as inside:
        client = inside.client(inside.deployer, "logs")
        client.create_log_group(**NAMED)
        for stream in ("flood", "quiet", "gone"):
            client.create_log_stream(**NAMED, logStreamName=stream)
        put(client, "gone", "old")
        put(client, "quiet", "q1", "q2", "q3")
        for number in range(5):
            put(client, "flood", f"{number}a", f"{number}b")
        client.delete_log_stream(**NAMED, logStreamName="gone")
        client.create_log_stream(**NAMED, logStreamName="gone")
        expected = {"quiet": ["q1", "q2", "q3"], "gone": [], "flood": ["3a", "3b", "4a", "4b"]}
        assert {stream: read(client, stream) for stream in expected} == expected
        saved = inside.cloud._simulation._saved._connection  # type: ignore[union-attr]
        assert inside.loop.run_until_complete(inside.cloud._on_thread(lambda _: saved.execute(
            "SELECT count(*) FROM events").fetchone()[0])) < 6, "rows of dropped events are deleted"  # fmt: skip
    with few, aws_inside(tmp_path) as again:
        client = again.client(again.deployer, "logs")
        assert {stream: read(client, stream) for stream in expected} == expected
        put(client, "flood", "5a")
        put(client, "gone", "new")
        assert read(client, "flood")[-1] == "5a"
        assert read(client, "quiet") == expected["quiet"], "the largest stream loses first"
    with aws_inside(tmp_path) as again:
        client = again.client(again.deployer, "logs")
        assert (read(client, "flood")[-1], read(client, "gone")) == ("5a", ["new"])


def test_a_call_that_fails_halfway_changes_nothing(logs: tuple[AwsInside, Any]) -> None:
    from moto.ec2.models import EC2Backend, ec2_backends

    inside, _ = logs
    inside.ask(inside.deployer, "ec2", "CreateVpc", CidrBlock="10.7.0.0/16")

    def fail(*_: Any, **__: Any) -> None:
        from moto.ec2.exceptions import EC2ClientError

        raise EC2ClientError("IncorrectState", "There is an existing association for instance")

    iam = inside.client(inside.deployer, "iam")
    iam.create_role(RoleName="r", AssumeRolePolicyDocument='{"Statement": {"Effect": "Allow", "Principal": {"Service":'
                    ' "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}}')  # fmt: skip
    iam.create_instance_profile(InstanceProfileName="r")
    iam.add_role_to_instance_profile(InstanceProfileName="r", RoleName="r")
    launch = {"MinCount": 1, "MaxCount": 1, "ImageId": "ami-0d11a1b2c3d4e5f60", "InstanceType": "t3.micro"}
    with patch.object(EC2Backend, "associate_iam_instance_profile", fail), pytest.raises(Exception, match="existing"):
        inside.ask(inside.deployer, "ec2", "RunInstances", **launch, IamInstanceProfile={"Name": "r"})
    assert list(ec2_backends[ACCOUNT]["us-east-1"].all_instances()) == []
    inside.ask(inside.deployer, "ec2", "RunInstances", **launch, IamInstanceProfile={"Name": "r"})

    def states() -> list[str]:
        groups = inside.ask(inside.deployer, "ec2", "DescribeInstances")["Reservations"]
        return [instance["State"]["Name"] for group in groups for instance in group["Instances"]]

    assert states() == ["running"]
    with patch.object(EC2Backend, "associate_iam_instance_profile", fail), pytest.raises(Exception, match="existing"):
        inside.ask(inside.deployer, "ec2", "RunInstances", **launch, IamInstanceProfile={"Name": "r"})
    assert states() == ["running"], "what the hosts reported is saved, and is not rolled back"
