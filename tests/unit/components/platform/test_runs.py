# SPDX-License-Identifier: Apache-2.0
import pytest

from components.platform.client import has_reached, unsuccessful_nodes
from components.platform.inputs import MUTABLE
from components.platform.runs import NodeRun, fingerprint_of_run, overall_state, run_outputs, run_spec
from components.platform.values import Properties

_INPUTS: Properties = {
    "platform": "oci",
    "job": "j",
    "project": "p",
    "compartment": "c",
    "displayName": "run",
    "nodes": [{"name": "main", "arguments": ["--name", "a b"], "environment": {"A": "1"}}],
    "layout": "run-per-node",
    "until": "started",
    "attempt": 1,
}


def _nodes(*states: str) -> list[NodeRun]:
    return [NodeRun(f"n{rank}", f"id{rank}", state) for rank, state in enumerate(states)]


@pytest.mark.parametrize(
    ("states", "whole"),
    [
        (["SUCCEEDED", "SUCCEEDED"], "SUCCEEDED"),
        (["SUCCEEDED", "IN_PROGRESS"], "IN_PROGRESS"),
        (["IN_PROGRESS", "ACCEPTED"], "ACCEPTED"),
        (["IN_PROGRESS", "CANCELING"], "CANCELED"),
        (["CANCELED", "FAILED"], "FAILED"),
        (["SUCCEEDED", "DELETED"], "NEEDS_ATTENTION"),
    ],
)
def test_a_run_is_as_good_as_its_worst_node(states: list[str], whole: str) -> None:
    assert overall_state(_nodes(*states)) == whole


@pytest.mark.parametrize(
    ("until", "states", "there"),
    [
        ("accepted", ["ACCEPTED"], True),
        ("started", ["ACCEPTED", "IN_PROGRESS"], False),
        ("started", ["SUCCEEDED", "IN_PROGRESS"], True),
        ("finished", ["SUCCEEDED", "IN_PROGRESS"], False),
        ("finished", ["SUCCEEDED", "SUCCEEDED"], True),
    ],
)
def test_how_far_a_run_is(until: str, states: list[str], there: bool) -> None:
    assert has_reached(until, _nodes(*states)) is there


def test_the_node_that_failed_comes_before_those_that_were_cancelled_for_it() -> None:
    assert [node.state for node in unsuccessful_nodes(_nodes("CANCELED", "FAILED", "SUCCEEDED"))] == [
        "FAILED",
        "CANCELED",
    ]


def test_the_fingerprint_is_of_what_is_run() -> None:
    first = fingerprint_of_run("urn", _INPUTS)
    assert fingerprint_of_run("urn", {**_INPUTS, **dict.fromkeys(MUTABLE, "other")}) == first
    assert fingerprint_of_run("other", _INPUTS) != first
    assert fingerprint_of_run("urn", {**_INPUTS, "attempt": 2}) != first


def test_values_of_the_inputs() -> None:
    spec = run_spec("urn", {**_INPUTS, "timeouts": {"started": 2}})
    assert spec.nodes[0].command_line == "--name 'a b'"
    assert (spec.timeouts.started, spec.timeouts.access) == (2.0, 5.0)


def test_a_run_starts_with_its_first_node_and_ends_with_its_last() -> None:
    nodes = [NodeRun("a", "1", "SUCCEEDED", "", "T2", "T3"), NodeRun("b", "2", "SUCCEEDED", "", "T1", "T4")]
    whole = run_outputs(_INPUTS, nodes)
    assert (whole["startedAt"], whole["finishedAt"]) == ("T1", "T4")
    assert "finishedAt" not in run_outputs(_INPUTS, [nodes[0], NodeRun("b", "2", "IN_PROGRESS", "", "T1")])
