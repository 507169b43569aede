# SPDX-License-Identifier: Apache-2.0
"""A job's own keys in the inputs of its runs; inputs of runs without such keys stay byte for byte."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from components.oci.run_inputs import Where, run_inputs
from tests.support.samples import job, own, plan

RESERVATION = "ocid1.capacityreservation.oc1.iad.a"
FILLER: Any = SimpleNamespace(environment=dict, document=str)


def inputs(**keys: Any) -> dict[str, Any]:
    made = plan(jobs={"train": replace(own(job()), **keys)})
    train = made.jobs["train"]
    return run_inputs(made, train, train.runs["base"], Where("j", "p", "i", None, None), FILLER)


def test_a_reservation_is_an_input_of_each_run_and_absent_where_there_is_none() -> None:
    assert "capacityReservation" not in inputs()
    assert inputs(capacity_reservation=RESERVATION) == inputs() | {"capacityReservation": RESERVATION}
