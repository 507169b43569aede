# SPDX-License-Identifier: Apache-2.0
"""The state of a node, from its reports and its instance, without a cloud."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from components.aws.client.machines import Instance, report_of_this_boot
from components.aws.client.start_folders import start_folder_uri
from components.aws.client.ticket_queue import NodeReport, parse_node_document
from components.aws.client.ticket_states import StartFacts, ticket_node_run
from components.aws.client.tickets import Cluster, RunId, Ticket, number_of
from components.platform.runs import read_launch_document
from components.platform.status import run_key

LAUNCHED = datetime(2026, 1, 1, 12, 0, 0, 500_000, tzinfo=UTC)
RUNNING = Instance("i-1", "main-0", "running", LAUNCHED)
TAKEN = replace(RUNNING, state="terminated", reason="Server.SpotInstanceTermination: taken", spot=True)
TICKET = Ticket(Cluster("b", "j"), 3, {"version": 1, "nodes": [{"name": "main-0"}]})
GOES_ON = {"state": "IN_PROGRESS", "instance": "i-1", "startedAt": "2026-01-01T12:00:00Z"}


@pytest.mark.parametrize(
    ("start", "instance", "cancelled", "state", "says"),
    [
        (None, RUNNING, False, "ACCEPTED", "waits for x"),
        (None, RUNNING, True, "CANCELING", "before it began"),
        (None, replace(RUNNING, state="stopped"), True, "CANCELED", "before it began"),
        (None, replace(RUNNING, state="stopped"), False, "ACCEPTED", "is stopped"),
        (None, None, False, "FAILED", "no instance"),
        (GOES_ON, RUNNING, False, "IN_PROGRESS", ""),
        (GOES_ON, RUNNING, True, "CANCELING", ""),
        (GOES_ON, TAKEN, False, "FAILED", "AWS took the spot instance i-1 back"),
        (GOES_ON, replace(RUNNING, id="i-2"), False, "FAILED", "i-1 was replaced while it ran"),
        (GOES_ON, None, False, "FAILED", "i-1 is gone"),
        ({"state": "SUCCEEDED"}, None, True, "SUCCEEDED", ""),
        ({"state": "FAILED", "code": 3}, RUNNING, False, "FAILED", "exit code 3"),
        ({"state": "FAILED", "details": "\x1b[2J"}, RUNNING, False, "FAILED", "[2J"),
    ],
)
def test_a_node_is_what_it_said_and_what_its_instance_is(
    start: Any, instance: Instance | None, cancelled: bool, state: str, says: str
) -> None:
    instances = {"main-0": instance} if instance is not None else {}
    node = ticket_node_run(TICKET, "main-0", start, StartFacts(cancelled, instances, "waits for x"))
    assert node.state == state
    assert says in node.details
    assert "\x1b" not in node.details


@pytest.mark.parametrize("moment", ["soon", "2026-01-01T12:00:00", 5, "9" * 5000])
def test_a_time_that_is_none_is_left_out(moment: Any) -> None:
    node = ticket_node_run(TICKET, "main-0", {"state": "SUCCEEDED", "startedAt": moment}, StartFacts(False, {}))
    assert node.started_at is None


def test_only_awss_clocks_decide_whether_a_report_counts() -> None:
    """The node's own clock is years off."""
    content = {"instance": "i-1", "state": "ready", "at": "1999-01-01T00:00:00Z"}
    second = LAUNCHED.replace(microsecond=0)
    assert report_of_this_boot(RUNNING, NodeReport(content, second)) is not None
    assert report_of_this_boot(RUNNING, NodeReport(content, second - timedelta(seconds=1))) is None, (
        "of an earlier boot"
    )
    assert report_of_this_boot(replace(RUNNING, id="i-2"), NodeReport(content, second)) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"version": 2, "nodes": [{"name": "a"}]}',
        b'{"version": 1, "nodes": []}',
        b"[" * 9999,
        b'{"version": 1, "nodes": [{"name": "\\ud800"}]}',
    ],
)
def test_an_object_that_is_no_ticket_is_none(body: bytes) -> None:
    assert Ticket.read("b", "j", 1, body) is None


@pytest.mark.parametrize(
    "node",
    [
        {"name": ["a"]}, {"name": "a/b"}, {"name": "../a"}, {"name": "a\x1b[2J"}, {"name": "a" * 300}, "a",
    ],
)  # fmt: skip
def test_a_ticket_with_such_a_node_is_none(node: Any) -> None:
    assert Ticket.read("b", "j", 1, json.dumps({"version": 1, "nodes": [node]}).encode()) is None


def test_of_a_forged_ticket_only_what_has_its_type_is_read() -> None:
    forged = {"version": 1, "nodes": [{"name": "main-0"}], "tags": {"stack": "s", "job": {"a": 1}, "run": ["x"]}}
    for region in (["us-east-1"], "evil.example/#", "us-east-1.evil.example", 5, ""):
        ticket = Ticket.read("b", "j", 1, json.dumps({**forged, "region": region}).encode())
        assert ticket is not None
        assert (ticket.cluster.region, dict(ticket.tags)) == (None, {"stack": "s"})


@pytest.mark.parametrize("state", [["FAILED"], {"FAILED": 1}, None, 5])
def test_a_state_that_is_no_word_is_not_read(state: Any) -> None:
    """Training code has the role of its machine, so it can write any text there."""
    assert parse_node_document(json.dumps({"state": state}).encode()) is None
    assert parse_node_document(b'{"state": "FAILED"}') == {"state": "FAILED"}


@pytest.mark.parametrize("code", [float("inf"), 10**4000, [1], True])
def test_a_code_that_is_none_is_not_shown(code: Any) -> None:
    assert ticket_node_run(TICKET, "main-0", {"state": "FAILED", "code": code}, StartFacts(False, {})).details == ""


def test_a_run_id_is_written_and_parsed() -> None:
    run = RunId("bucket", "resnet", 7, "main-0")
    assert str(run) == "aws-dl1/bucket/resnet/00000007/main-0"
    assert RunId.parse(str(run)) == run
    assert RunId.parse("ocid1.datasciencejobrun.x") is None
    assert number_of(".trainyard/clusters/j/queue/00000012.json") == 12
    assert number_of("queue/12.json") is None
    assert number_of("queue/00000012.json.new") is None


@pytest.mark.parametrize("odd", [None, 1, True, [], ["a"], {}, {"a": 1}, {"stack": {}, "job": [], "run": 3}])
def test_whatever_a_ticket_says_it_can_be_shown(odd: Any) -> None:
    """Whoever can write to the bucket can write anything: an invalid ticket must not hide the others."""
    node: dict[str, Any] = {"name": "main-0", "environment": {}}
    whole = {"version": 1, "tags": {"stack": "s"}, "nodes": [node]}
    texts = ("region", "stack", "logGroup", "secret", "code", "launcher", "createdAt", "run", "displayName", "tags")
    written = [{**whole, key: odd} for key in texts]
    written += [{**whole, "nodes": [{**node, key: odd}]} for key in ("environment", "rank", "role")]
    for content in written:
        ticket = Ticket.read("b", "j", 1, json.dumps(content).encode())
        assert ticket is not None
        assert hash(run_key(ticket.tags)) is not None
        assert isinstance(ticket.cluster.region, str | None)
        assert start_folder_uri(read_launch_document(ticket.nodes[0].get("environment")), ticket.start) is None
        seen = ticket_node_run(ticket, "main-0", {"state": odd}, StartFacts(False, {"main-0": RUNNING}))
        assert seen.state == "IN_PROGRESS"


def test_a_folder_that_no_client_takes_is_none() -> None:
    for folder in ("s3://b/\ud800", "s3://b/a\x00b", "s3://b/\n"):
        assert start_folder_uri({"folder": folder}, "s00000001") is None
    assert start_folder_uri({"folder": "s3://b/été 1"}, "s00000001") == "s3://b/été 1/s00000001"
