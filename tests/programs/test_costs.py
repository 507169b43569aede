# SPDX-License-Identifier: Apache-2.0
"""Time and cost of a node are equal in a review, which reads the plan, and in the pack, which reads resources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from catalog.platforms import require_capability
from components.platform.review import ReviewPlatform, Snapshot
from policies.jobs import PolicyJob, accelerators_at_once, dollars_at_most, jobs_of, machine_of, nodes_at_once
from policies.offline import as_judged_resource
from policies.rule import JudgedStack, NotKnownError
from policies.rules.budget import TARGET
from tests.programs.conftest import Record, Written
from tests.support.examples import AWS_EXAMPLES, EXAMPLES, OPENPAI_EXAMPLES, PLATFORM, stack_file
from tests.support.reviews import recorded
from trainyard.review.costs import stack_costs

OWN: Mapping[str, Any] = {"dl1.24xlarge": {"usd_per_hour": 13}, "openpai": {"usd_per_hour": 2}}
FLEX = "VM.Standard.E5.Flex"
# Of the block storage that a node has by default.
DISK = 100 * 0.0000571
Answer = Callable[[], float]


def known(answer: Answer) -> float | None:
    try:
        return answer()
    except NotKnownError:
        return None


def by_resources(side: Snapshot, prices: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    stack = JudgedStack(tuple(map(as_judged_resource, side.resources)))
    targets = bool(stack.of(TARGET))
    return {job.name: _of_job(job, prices, targets) for job in jobs_of(stack)}


def _of_job(job: PolicyJob, prices: Mapping[str, Any], targets: bool) -> tuple[float | None, ...]:
    return (
        known(machine_of(job, prices, targets).usd),
        known(lambda: nodes_at_once(job)),
        known(lambda: accelerators_at_once(job)),
        known(lambda: dollars_at_most(job, prices, targets)),
    )


def by_plan(side: Snapshot, prices: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    answers = require_capability(side.platform, ReviewPlatform)
    machines = answers.costs(side, prices).jobs
    found = {}
    for job in stack_costs(side, answers, prices, ()).jobs:
        own = machines[job.job]
        # Runs of AWS take turns on the machines of their job.
        at_once = own.nodes * (1 if side.platform == "aws-dl1" else max(job.runs, 1))
        gpus = None if own.accelerators is None else own.accelerators * at_once
        usd = None if job.usd_per_run is None else job.usd_per_run * max(job.runs, 1)
        found[job.job] = (own.usd_per_hour, at_once, gpus, usd)
    return found


def rounded(found: Mapping[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    return {name: tuple(None if one is None else round(one, 6) for one in row) for name, row in found.items()}


def same_on_both_sides(side: Snapshot, prices: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    found = rounded(by_plan(side, prices))
    assert rounded(by_resources(side, prices)) == found
    return found


@pytest.mark.parametrize("name", [*EXAMPLES, *AWS_EXAMPLES, *OPENPAI_EXAMPLES])
def test_an_example_costs_the_same_on_both_sides(name: str, record: Record) -> None:
    references = {PLATFORM: record("oci-platform").exports} if name == "oci-team" else {}
    side = recorded(record(name, references=references), stack_file(name))
    for prices in ({}, OWN):
        found = same_on_both_sides(side, prices)
        assert prices or side.platform == "oci" or all(row[0] is None for row in found.values())


@pytest.mark.parametrize(
    ("shape", "prices", "price"),
    [
        ({"name": FLEX, "ocpus": 2, "memoryGb": 16}, {}, 2 * 0.03 + 16 * 0.002 + DISK),
        (
            {"name": FLEX, "ocpus": 2, "memoryGb": 16},
            {FLEX: {"usd_per_ocpu_hour": 1, "usd_per_gib_hour": 0.5}},
            10.0 + DISK,
        ),
        ({"name": FLEX, "ocpus": 2, "memoryGb": 16}, {FLEX: {"usd_per_hour": 7}}, 7.0 + DISK),
        ({"name": "VM.Standard3.Flex", "ocpus": 2, "memoryGb": 16}, {}, None),
    ],
)
def test_a_flexible_shape_has_one_price(
    shape: dict[str, Any], prices: dict[str, Any], price: float | None, changed: Written, tmp_path: Path
) -> None:
    def flexible(config: dict[str, Any]) -> None:
        for job in config["trainyard:jobs"].values():
            job["shape"] = shape

    recording = changed("oci-dask-sklearn", flexible)
    found = same_on_both_sides(recorded(recording, tmp_path / "Pulumi.oci-dask-sklearn.yaml"), prices).values()
    assert {row[0] for row in found} == {price and round(price, 6)}
    assert {row[3] is None for row in found} == {price is None}
