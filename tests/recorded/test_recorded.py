# SPDX-License-Identifier: Apache-2.0
"""Reviews and drifts of drawn changes are byte by byte as recorded. `python -m tests.recorded --renew` records them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recorded import drifts, live_drifts, reviews
from tests.support.counts import drawn


@pytest.mark.parametrize("name", drawn(reviews.rounds(), 1))
def test_the_review_of_a_drawn_change_is_as_recorded(name: str) -> None:
    assert reviews.differences(name) == ""


def test_the_drift_of_each_drawn_change_is_as_recorded() -> None:
    assert [text for name in drifts.drift_names() if (text := drifts.difference(name))] == []


def test_the_drift_of_recorded_clouds_is_as_recorded(tmp_path: Path) -> None:
    """Read by the clouds' own clients, from a server that answers as the local clouds did."""
    assert live_drifts.live_differences(drawn(live_drifts.live_changes(), 3), tmp_path) == []
