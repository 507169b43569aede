# SPDX-License-Identifier: Apache-2.0
"""Every framework trains under the planned rules, and each of them is missed: by a pair of nodes that is named."""

from __future__ import annotations

import pytest

from tests.cloud_fixture import eventually
from tests.counts import wanted
from tests.flows.cloud_world import TERMINAL
from tests.frameworks.examples import EXAMPLES
from tests.frameworks.field import LONGEST_SECONDS, Field

TWO = [name for name, example in EXAMPLES.items() if len(example.roles) == 2]
RUNS = [(name, 3) for name in EXAMPLES] + [(name, 2) for name in TWO if wanted(0, 1)]
# Example, the planned ports that are closed, and which ports the evidence has to name.
MISSED = [
    ("dask", "8786", range(8786, 8787)),
    ("dask", "8700-8800", range(8700, 8801)),
    ("dask-lightgbm", "8900-8963", range(8900, 8964)),
    ("dask-xgboost", "8810", range(8810, 8811)),
    ("dask-xgboost", "8900-8963", range(8900, 8964)),
    ("pytorch", "29400", range(29400, 29401)),
    ("pytorch", "29500-29563", range(29500, 29564)),
    ("tensorflow", "12345", range(12345, 12346)),
    ("tensorflow-ps", "12345", range(12345, 12346)),
    ("horovod-pytorch", "29600", range(29600, 29601)),
    ("horovod-pytorch", "30000-30511", range(30000, 30512)),
    ("horovod-tensorflow", "29600", range(29600, 29601)),
    ("horovod-tensorflow", "30000-30511", range(30000, 30512)),
]
SAMPLE = {("dask", "8700-8800"), ("dask-xgboost", "8900-8963"), ("pytorch", "29500-29563"), ("tensorflow", "12345"),
          ("horovod-pytorch", "30000-30511")}  # fmt: skip


@pytest.mark.parametrize(("name", "count"), RUNS)
def test_it_trains_under_the_planned_rules(field: Field, name: str, count: int) -> None:
    example = EXAMPLES[name]
    environment = example.environment()
    with field.run(example.job(count), example.folder, environment) as run:
        run.succeeds()
        assert example.result in run.left("result.json")
        assert run.status(0)["progress"]["loss"] >= 0
        assert run.dropped() == set(), "nothing was asked for that the plan does not open"


@pytest.mark.parametrize(
    ("name", "closed", "ports"), [case for case in MISSED if wanted(0, 1) or case[:2] in SAMPLE], ids=str
)
def test_it_misses_each_rule_of_the_plan(field: Field, name: str, closed: str, ports: range) -> None:
    example = EXAMPLES[name]
    environment = example.environment()
    with field.run(example.job(3), example.folder, environment, without=[closed]) as run:
        missed = eventually(run.dropped, lambda found: any(port in ports for _, _, port in found), LONGEST_SECONDS)
        assert {port for _, _, port in missed} <= set(ports)
        assert not set(run.states()) <= TERMINAL or "FAILED" in run.states()
        assert "SUCCEEDED" not in run.states()
