# SPDX-License-Identifier: Apache-2.0
"""Every framework trains under the planned rules. Without any one rule it fails, and the evidence names the pair of
nodes.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.counts import drawn, wanted
from tests.support.field import LONGEST_SECONDS, Field
from tests.support.framework_examples import CLOSED_RULES, EXAMPLES, RULE_OF_EACH
from tests.support.waiting import eventually

PAGE = Path(__file__).parents[2] / "docs" / "frameworks.md"
TWO = [name for name, example in EXAMPLES.items() if len(example.roles) == 2]
# One for each kind of rendezvous: a scheduler, a store, a ring. `make test` trains the others in docs/first-hour.md.
SAMPLED = ("dask", "pytorch", "horovod-pytorch")
ALL = [*((name, 3) for name in EXAMPLES), *((name, 2) for name in TWO)]
RUNS = ALL if wanted(0, 1) else [(name, 3) for name in SAMPLED]


@pytest.mark.parametrize(("name", "count"), RUNS)
def test_a_framework_trains_under_the_planned_rules(field: Field, name: str, count: int) -> None:
    example = EXAMPLES[name]
    environment = example.environment()
    with field.run(example.job(count), example.folder, environment) as run:
        run.succeeds()
        assert example.result in run.left("result.json")
        assert run.status(0)["progress"]["loss"] >= 0
        assert run.dropped() == set(), "nothing was asked for that the plan does not open"


@pytest.mark.torture
def test_the_framework_file_of_the_page_trains(field: Field) -> None:
    """docs/frameworks.md shows a complete file. Its ports and waits are sufficient."""
    columns = tomllib.loads(re.findall(r"```toml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)[0])
    example = EXAMPLES["ray"]
    job = replace(example.job(2), framework=columns["name"])
    with field.run(job, example.folder, example.environment(), own={columns["name"]: columns}) as run:
        run.succeeds()
        assert run.left("result.json")["held"] == 2, "both nodes held points"
        assert run.dropped() == set(), "nothing was asked for that the page does not name"


@pytest.mark.parametrize(("name", "closed"), CLOSED_RULES if wanted(0, 1) else drawn(RULE_OF_EACH, 1))
def test_training_fails_without_any_one_rule_of_the_plan(field: Field, name: str, closed: str) -> None:
    example = EXAMPLES[name]
    environment = example.environment()
    first, _, last = closed.partition("-")
    with field.run(example.job(3), example.folder, environment, without=[closed]) as run:
        missed = eventually(run.dropped, bool, LONGEST_SECONDS)
        assert {port for _, _, port in missed} <= set(range(int(first), int(last or first) + 1))
        assert "SUCCEEDED" not in run.states()
