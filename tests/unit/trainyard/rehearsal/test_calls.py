# SPDX-License-Identifier: Apache-2.0
"""Recorded calls are decided again under other statements, with their own values and time."""

from __future__ import annotations

from components.oci.local.evidence import newly_refused, read_recorded_call
from tests.unit.trainyard.rehearsal.recorded import COMPARTMENT, NAMES, PEOPLE, call, facts


def test_a_call_is_judged_again_at_its_own_time() -> None:
    """The recorded call was at noon on a Friday."""
    asked = read_recorded_call(call("GetJob", ["DATA_SCIENCE_JOB_READ"], "people", PEOPLE), NAMES)

    def still_allowed(condition: str) -> bool:
        grant = f"Allow group people to read data-science-jobs in compartment id {COMPARTMENT}"
        there = facts(f"{grant} where request.utc-timestamp{condition}")
        return not newly_refused([asked], there, there.policies)

    assert still_allowed(".day-of-week = 'friday'")
    assert not still_allowed(".day-of-week = 'sunday'")
    assert still_allowed(".time-of-day between '11:00:00Z' and '13:00:00Z'")
    assert not still_allowed(" after '2026-05-02T00:00:00Z'")
