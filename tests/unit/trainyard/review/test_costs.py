# SPDX-License-Identifier: Apache-2.0
"""The most that runs can cost. An unknown part makes the sum unknown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from components.platform.review import Costs, Machines, Standing
from tests.support.review_samples import Table, side
from trainyard.review.costs import PricesError, read_prices, stack_costs
from trainyard.review.model import Change, StackCosts

RUN = "trainyard:index:Run"


def plan(minutes: int = 90) -> dict[str, Any]:
    nodes = [{"launch": {"retry": {"count": 2}}}, {"launch": {}}]
    job = {
        "shape": {"name": "gpu"},
        "roles": [{"replicas": 1}, {"replicas": 3}],
        "maximumRuntimeMinutes": minutes,
        "runs": {"base": {"nodes": nodes}, "tuned": {"nodes": nodes}},
    }
    return {"jobs": {"resnet": job}}


def started(*names: str, kind: Any = "created") -> tuple[Change, ...]:
    return tuple(Change(kind, RUN, name, name) for name in names)


def costs(
    machines: Machines | None, changes: tuple[Change, ...] = (), standing: tuple[Standing, ...] = ()
) -> StackCosts:
    known = Costs({"resnet": machines} if machines else {}, standing)
    return stack_costs(side(plan=plan()), Table(costing=known), {}, changes)


def test_a_run_costs_price_times_nodes_times_time() -> None:
    """The launcher's retries are part of that time."""
    found = costs(Machines("gpu", 4, 2, 3.0), started("resnet/base", "resnet/tuned"))
    (job,) = found.jobs
    assert (job.hours, job.node_hours, job.gpu_hours) == (1.5, 6.0, 12.0)
    assert (job.usd_per_hour, job.usd_per_run) == (12.0, 18.0)
    assert (found.starts, found.usd_starting, found.usd_per_hour) == (2, 36.0, 0.0)


def test_only_runs_that_start_are_counted() -> None:
    machines = Machines("gpu", 4, 2, 3.0)
    assert costs(machines).usd_starting == 0.0
    assert costs(machines, started("resnet/base", kind="changed")).starts == 0
    assert costs(machines, started("resnet/base", kind="replaced")).usd_starting == 18.0


def test_what_has_no_price_has_no_sum() -> None:
    found = costs(Machines("gpu", 4), started("resnet/base"), (Standing("NAT", 0.05), Standing("other", None)))
    assert (found.usd_starting, found.usd_per_hour) == (None, None)
    assert found.jobs[0].node_hours == 6.0
    assert costs(None, started("resnet/base")).usd_starting is None


def test_machines_that_stay_are_counted_until_they_stop() -> None:
    found = costs(Machines("gpu", 4, 0, 3.0, stays=True, idle_minutes=30), started("resnet/base", "resnet/tuned"))
    assert (found.usd_starting, found.usd_per_hour) == (36.0 + 6.0, 0.0)
    for_ever = costs(Machines("gpu", 4, 0, 3.0, stays=True), started("resnet/base"))
    assert (for_ever.usd_starting, for_ever.usd_per_hour) == (None, 12.0)


def test_nothing_bounds_a_run_without_a_longest_time() -> None:
    known = Table(costing=Costs({"resnet": Machines("gpu", 4, 0, 3.0)}))
    found = stack_costs(side(plan=plan(minutes=0)), known, {}, started("resnet/base"))
    assert found.usd_starting is None


@pytest.mark.parametrize(("retries", "hours"), [(0, 1.5), (5, 9.0), (-1, None)])
def test_a_platform_that_ends_only_a_start_is_paid_for_each(retries: int, hours: float | None) -> None:
    known = Table(costing=Costs({"resnet": Machines("gpu", 4, 0, 3.0, retries=retries)}))
    found = stack_costs(replace(side(plan=plan()), platform="openpai"), known, {}, started("resnet/base"))
    assert found.jobs[0].hours == hours
    assert (found.usd_starting is None) == (hours is None)


def test_unknown_accelerators_have_no_gpu_hours() -> None:
    assert costs(Machines("gpu", 4, None, 3.0)).jobs[0].gpu_hours is None


def test_a_teams_prices_are_read(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('["VM.GPU.A10.1"]\nusd_per_hour = 1.2\nsource = "contract"\n')
    assert read_prices(file)["VM.GPU.A10.1"]["usd_per_hour"] == 1.2
    file.write_text('["VM.Standard3.Flex"]\nusd_per_ocpu_hour = 0.04\nusd_per_gib_hour = 0.002\n')
    assert read_prices(file)["VM.Standard3.Flex"]["usd_per_ocpu_hour"] == 0.04


@pytest.mark.parametrize(
    "text",
    [
        "a = ",
        "a = 1",
        "[a]\nusd_per_hour = -1",
        "[a]\nusd_per_hour = nan",
        "[a]\nusd_per_hour = true",
        "[a]\nusd_per_ocpu_hour = 1",
    ],
)
def test_what_is_no_price_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(PricesError, match=r"prices\.toml"):
        read_prices(file)
