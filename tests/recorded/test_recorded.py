# SPDX-License-Identifier: Apache-2.0
"""Reviews of drawn changes are byte by byte as recorded. `python -m tests.recorded --renew` records them again."""

from __future__ import annotations

import pytest

from tests.recorded.reviews import differences, rounds
from tests.support.counts import drawn


@pytest.mark.parametrize("name", drawn(rounds(), 1))
def test_the_review_of_a_drawn_change_is_as_recorded(name: str) -> None:
    assert differences(name) == ""
