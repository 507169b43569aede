# SPDX-License-Identifier: Apache-2.0
"""What makes a review fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.review_samples import whole_repository, whole_review
from trainyard.review.gates import GateError, find_tripped_gates, parse_gates
from trainyard.review.model import Opening, Review, StackCosts

EMPTY = Review("one", "one.yaml", "oci", "same")


@pytest.mark.parametrize("gate", ["replace", "exposure", "access-gain", "cost=10", "policy", "unproven", "program"])
def test_each_gate_trips_on_its_own_and_is_quiet_on_nothing(gate: str) -> None:
    assert {one.gate for one in find_tripped_gates([whole_review()], parse_gates(gate))} == {gate.partition("=")[0]}
    assert find_tripped_gates([EMPTY], parse_gates(gate)) == ()


@pytest.mark.parametrize(
    "text", ["replaced", "cost", "cost=", "cost=-1", "cost=nan", "policy=3", "", " , ", "cost=1,000"]
)
def test_an_unknown_gate_is_refused(text: str) -> None:
    with pytest.raises(GateError):
        parse_gates(text)


def test_no_gate_passes_where_a_side_cannot_be_read() -> None:
    gates = parse_gates("replace,exposure,access-gain,cost=10,policy,unproven,program")
    assert len(find_tripped_gates([replace(EMPTY, judged=False, refused="errors")], gates)) == len(gates)


def test_no_gate_passes_where_up_would_refuse_and_reasons_of_its_own_stay() -> None:
    gates = parse_gates("replace,exposure,access-gain,cost=10,policy,unproven,program")
    opened = (Opening("TCP 22 into the subnet", True),)
    tripped = find_tripped_gates([replace(EMPTY, refused="no", opened=opened)], gates)
    assert {one.gate for one in tripped} == {gate.name for gate in gates}
    assert [one.because for one in tripped if one.gate == "exposure"] == ["TCP 22 into the subnet"]


def test_what_lies_beside_the_stacks_trips_its_gate_once_for_all() -> None:
    gates = parse_gates("program,policy")
    (tripped,) = find_tripped_gates([EMPTY, EMPTY], gates, whole_repository("x"))
    assert (tripped.gate, tripped.stack, tripped.where) == ("program", "", "every stack")
    assert find_tripped_gates([EMPTY], parse_gates("policy"), whole_repository("x")) == ()


def test_a_cost_above_trips_and_an_unknown_one_too() -> None:
    def gates(most: float | None) -> int:
        return len(
            find_tripped_gates([replace(EMPTY, costs=StackCosts(usd_starting=most, starts=1))], parse_gates("cost=100"))
        )

    assert (gates(100.0), gates(100.01), gates(None)) == (0, 1, 1)
