# SPDX-License-Identifier: Apache-2.0
"""Every rule of every framework closed once: nodes name it before training, with the pairs that the firewalls saw."""

from __future__ import annotations

import json

import pytest

from tests.support.counts import drawn, wanted
from tests.support.field import Field
from tests.support.framework_examples import CLOSED_RULES, EXAMPLES
from tests.support.oci_plans import oci_plan
from tests.support.samples import stack

# Ten seconds without an answer, and what it takes to tell it to all nodes.
LONGEST_SECONDS = 15.0


def _rule_of_each_framework() -> list[tuple[str, str]]:
    by_framework: dict[str, list[tuple[str, str]]] = {}
    for rule in CLOSED_RULES:
        by_framework.setdefault(EXAMPLES[rule[0]].framework, []).append(rule)
    return [rule for rules in by_framework.values() for rule in drawn(rules, 1)]


@pytest.mark.parametrize(("name", "closed"), CLOSED_RULES if wanted(0, 1) else _rule_of_each_framework())
def test_a_closed_rule_is_named_before_training(field: Field, name: str, closed: str) -> None:
    example = EXAMPLES[name]
    job = example.job(3)
    planned = oci_plan(stack(jobs={"train": job})).jobs["train"]
    told = json.dumps(planned.expects)
    first, _, last = closed.partition("-")
    ports = {int(first), int(last or first)}
    launch = planned.runs["base"].nodes[0].launch
    ranks: dict[str, list[int]] = {}
    for node in planned.runs["base"].nodes:
        ranks.setdefault(node.role, []).append(node.rank)
    missed = {
        (source, target, port)
        for row in planned.expects["connections"]
        if set(launch["ports"][row["label"]]["range"]) == ports
        for role in row["from"]
        for source in ranks[role]
        for reached in row["to"]
        for target in ranks[reached]
        for port in ports
        if source != target
    }
    assert missed
    with field.run(job, example.folder, example.environment(), without=[closed], TRAINYARD_EXPECTS=told) as run:
        assert set(run.finished()) == {"FAILED"}
        said = [[line for line in run.lines(rank) if "cannot reach" in line] for rank in range(3)]
        assert len({text.partition("] ")[2] for lines in said for text in lines}) == 1, said
        assert [len(lines) for lines in said] == [1, 1, 1]
        rule = planned.expects["rules"]["place"]
        assert f"Add to {rule}: ingress and egress TCP {closed}, " in said[0][0]
        assert run.dropped() == missed, "exactly what is closed, and nothing else is asked for"
        for rank in range(3):
            status = run.status(rank)
            assert (status["state"], status["code"]) == ("failed", 78)
            assert status["preflight"]["findings"] == [status["reason"]]
            assert 10 <= status["preflight"]["seconds"] < LONGEST_SECONDS, "from when all nodes are there"


@pytest.mark.torture
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_undisturbed_run_is_accused_of_nothing_and_binds_what_was_tested(field: Field, name: str) -> None:
    example = EXAMPLES[name]
    job = example.job(3)
    told = json.dumps(oci_plan(stack(jobs={"train": job})).jobs["train"].expects)
    with field.run(job, example.folder, example.environment(), TRAINYARD_EXPECTS=told) as run:
        run.succeeds()
        results = [run.status(rank)["preflight"] for rank in range(3)]
        assert [result["findings"] for result in results] == [[], [], []]
        assert run.dropped() == set()
