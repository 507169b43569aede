# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.platform.inputs import input_failures, with_defaults
from components.platform.values import UNKNOWN, Properties

_GOOD: Properties = {
    "platform": "oci",
    "job": "ocid1.datasciencejob",
    "project": "ocid1.datascienceproject",
    "compartment": "ocid1.compartment",
    "displayName": "run",
    "nodes": [{"name": "main"}, {"name": "worker"}],
}


def _said(inputs: Properties) -> list[str]:
    return [f"{failure.property}: {failure.reason}" for failure in input_failures(with_defaults(inputs))]


def test_valid_inputs_have_no_failures() -> None:
    assert _said(_GOOD) == []


def test_unknown_inputs_have_no_failures() -> None:
    assert _said(dict.fromkeys(_GOOD, UNKNOWN)) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"job": None}, "job: `job` is missing."),
        ({"nodes": []}, "nodes: `nodes` is missing."),
        ({"platform": "moon"}, "platform: `moon` is not one of oci, aws-dl1, openpai."),
        ({"layout": "x"}, "layout: `x` is not one of run-per-node, node-groups."),
        ({"until": "soon"}, "until: `soon` is not one of accepted, started, finished."),
        ({"log": "ocid1.log"}, "log: `log` is given without its `logGroup`; give both."),
        ({"attempt": 0}, "attempt: `0` is not a positive number."),
        ({"maximumRuntimeMinutes": "10"}, "maximumRuntimeMinutes: `10` is not a positive number."),
        (
            {"timeouts": {"start": 1}},
            "timeouts.start: There is no such timeout; there are access, started and finished.",
        ),
        ({"timeouts": 5}, "timeouts: This is an object of minutes: access, started, finished."),
        ({"nodes": [{}]}, "nodes[0].name: The node has no name."),
        ({"nodes": ["main"]}, "nodes[0]: A node is an object with a name."),
        ({"nodes": [{"name": "a"}] * 2}, "nodes: Two nodes are called `a`; every node has a name of its own."),
        (
            {"nodes": [{"name": "a", "replicas": 2}]},
            "nodes[0].replicas: Only the layout `node-groups` has this. Here, list every node.",
        ),
    ],
)
def test_an_invalid_input_is_named_with_the_reason(change: Properties, says: str) -> None:
    assert _said({**_GOOD, **change}) == [says]


def test_an_unknown_input_is_named_with_the_known_ones() -> None:
    (said,) = _said({**_GOOD, "nodez": []})
    assert said.startswith("nodez: A run has no input `nodez`; it has attempt, capacityReservation, compartment")


def test_defaults_and_one_form_for_all() -> None:
    node = {"name": "a", "arguments": "--lr '0.1 0.2'", "environment": {"N": 1, "B": True}, "role": None}
    inputs = with_defaults({**_GOOD, "nodes": [node]})
    assert (inputs["layout"], inputs["until"], inputs["attempt"]) == ("run-per-node", "started", 1)
    assert inputs["nodes"] == [{"name": "a", "arguments": ["--lr", "0.1 0.2"], "environment": {"N": "1", "B": "true"}}]
    assert with_defaults(inputs) == inputs


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just(UNKNOWN),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "a", "replicas"]), inner),
)


@given(st.dictionaries(st.sampled_from([*_GOOD, "timeouts", "log", "attempt", "x"]), _ANY))
def test_no_input_makes_the_check_fail(inputs: dict[str, Any]) -> None:
    list(input_failures(with_defaults(inputs)))
