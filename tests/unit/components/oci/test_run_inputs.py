# SPDX-License-Identifier: Apache-2.0
"""A job's own keys in the inputs of its runs; inputs of runs without such keys stay byte for byte."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from catalog.reason_tags import LAUNCH
from components.oci.run_inputs import LONGEST_TAG, Where, launch_tags, make_run_inputs
from schemas.model import PortRange
from tests.support.samples import job, own, plan

RESERVATION = "ocid1.capacityreservation.oc1.iad.a"
FILLER: Any = SimpleNamespace(environment=dict, document=str)


def inputs(**keys: Any) -> dict[str, Any]:
    made = plan(jobs={"train": replace(own(job()), **keys)})
    train = made.jobs["train"]
    return make_run_inputs(made, train, train.runs["base"], Where("j", "p", "i", None, None), FILLER)


def test_a_reservation_is_an_input_of_each_run_and_absent_where_there_is_none() -> None:
    assert "capacityReservation" not in inputs()
    assert inputs(capacity_reservation=RESERVATION) == inputs() | {"capacityReservation": RESERVATION}


def test_a_job_without_runs_tells_what_a_run_would() -> None:
    train = plan(jobs={"train": own(job())}).jobs["train"]
    assert train.runs
    assert launch_tags(train) == {}
    alone = replace(train, runs={})
    said = launch_tags(alone)[LAUNCH]
    assert said.startswith(f"nodes={train.nodes} ports=")
    many = {f"port-{number}": PortRange(20000 + 2 * number, 20000 + 2 * number) for number in range(LONGEST_TAG)}
    assert launch_tags(replace(alone, roles=(replace(train.roles[0], ports=many),))) == {}
