# SPDX-License-Identifier: Apache-2.0
"""What is drift and what is not, between two snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from components.platform.live import LiveSide
from components.platform.review import SECRET, ReviewedResource, Snapshot
from components.platform.runs import NodeRun
from components.platform.status import NodeStatus, RunStatus
from trainyard.drift.compare import EffectDifferences, Remark, compare_resources, compare_runs, in_order

UNJUDGED, JUDGED = EffectDifferences((), judged=False), EffectDifferences((), judged=True)


def resource(name: str, **inputs: Any) -> ReviewedResource:
    return ReviewedResource("cloud:core/firewallList:FirewallList", name, f"urn::{name}", "", inputs, id=name)


def side(declared: list[ReviewedResource], live: list[ReviewedResource], **more: Any) -> LiveSide:
    return LiveSide(Snapshot("demo", "", {}, tuple(declared)), Snapshot("demo", "", {}, tuple(live)), **more)


def said(seen: LiveSide, effects: EffectDifferences = UNJUDGED) -> list[tuple[str, str]]:
    return [(one.kind, one.words) for one in compare_resources(seen, effects)]


def test_what_is_as_declared_gives_no_remark() -> None:
    rules = resource("rules", ports=[1, 2], options={"open": False})
    assert said(side([rules], [replace(rules, inputs={"options": {"open": False}, "ports": [1, 2]})])) == []


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ({"open": False}, {"open": True}, "open: false, now true"),
        ({"a": {"b": "x", "c": 1}}, {"a": {"b": "y", "c": 1}}, "a.b: x, now y"),
        ({"ports": [1, 2]}, {"ports": [1, 3]}, "ports: now without 2; with 3"),
        ({"ports": [1, 2]}, {"ports": [2, 1]}, "ports: now in another order"),
        ({}, {"cmd": "sh"}, "cmd: nothing, now sh"),
        ({"cmd": "sh"}, {"cmd": None}, "cmd: sh, now nothing"),
        (
            {"policy": '{"Statement": [{"Action": "a"}]}'},
            {"policy": '{"Statement": [{"Action": "a"}, {"Action": "b"}]}'},
            'policy: now with {"Action": "b"}',
        ),
    ],
)
def test_a_change_is_told_by_its_place_and_both_values(
    before: Mapping[str, Any], after: Mapping[str, Any], words: str
) -> None:
    seen = side([resource("rules", **before)], [resource("rules", **after)])
    assert said(seen) == [("changed", f"firewall list rules: {words}")]


@pytest.mark.parametrize(
    "inputs",
    [
        {"password": "hunter2-hunter2"},
        {"details": {"environmentVariables": {"COLOUR": "hunter2-hunter2"}}},
        {"apiToken": "hunter2-hunter2"},
        {"API_TOKEN": "hunter2-hunter2"},
        {"url": "https://me:hunter2-hunter2@example.com"},
    ],
)
def test_no_secret_is_shown(inputs: Mapping[str, Any]) -> None:
    sealed = resource("rules", **dict.fromkeys(inputs, SECRET))
    for declared in (sealed, resource("rules")):
        told = str(said(side([declared], [resource("rules", **inputs)])))
        assert "changed" in told
        assert "hunter2" not in told


def test_what_is_judged_by_its_meaning_is_no_remark_as_a_text() -> None:
    seen = side(
        [resource("rules", ports=[1], colour="red")],
        [resource("rules", ports=[1, 1], colour="blue")],
        judged={"cloud:core/firewallList:FirewallList": frozenset({"ports"})},
    )
    assert said(seen, JUDGED) == [("changed", "firewall list rules: colour: red, now blue")]
    assert len(said(seen, UNJUDGED)) == 2, "where nobody evaluates, the texts count"


def test_what_is_gone_and_what_nobody_declared_are_told() -> None:
    other = replace(resource("other"), urn="undeclared::x")
    seen = side([resource("rules")], [other], undeclared={"undeclared::x": "list other: no stack declares it"})
    assert said(seen) == [("undeclared", "list other: no stack declares it"), ("gone", "firewall list rules is gone")]


def test_what_somebody_may_have_got_comes_first() -> None:
    rows = [Remark("run", "a"), Remark("changed", "b"), Remark("gains", "c"), Remark("opens", "d"), Remark("run", "a")]
    assert [one.words for one in in_order(rows)] == ["d", "c", "b", "a"]


def run(name: str, *states: str) -> RunStatus:
    nodes = tuple(NodeStatus(rank, NodeRun(f"main-{rank}", "id", state), "main") for rank, state in enumerate(states))
    return RunStatus("demo", "line", name, 1, datetime(2026, 1, 1, tzinfo=UTC), nodes)


@pytest.mark.parametrize(
    ("recorded", "states", "words"),
    [
        ("SUCCEEDED", ["SUCCEEDED"], ""),
        ("IN_PROGRESS", ["SUCCEEDED", "FAILED"], ""),
        ("IN_PROGRESS", ["FAILED", "CANCELED"], "run line/base was cancelled; it was running at the last `up`"),
        ("SUCCEEDED", ["CANCELED"], "run line/base was cancelled; it was SUCCEEDED at the last `up`"),
        ("CANCELED", ["CANCELED"], ""),
        ("SUCCEEDED", [], "run line/base: no start of it exists any more"),
    ],
)
def test_a_run_drifts_if_somebody_ended_or_removed_it(recorded: str, states: list[str], words: str) -> None:
    seen = [run("base", *states)] if states else []
    told = [one.words for one in compare_runs({("line", "base"): recorded}, [*seen, run("try-1", "CANCELED")])]
    again = "; a higher `attempt` starts it again"
    assert told == ([words + again] if words else [])
