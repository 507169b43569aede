# SPDX-License-Identifier: Apache-2.0
"""No change of the list in tests/support/silent_changes passes a review in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.silence import TOPICS, changes_of_topic, what_is_silent


@pytest.mark.parametrize("topic", TOPICS)
def test_no_change_of_this_topic_is_silent(topic: str, tmp_path: Path) -> None:
    missing = list(what_is_silent(changes_of_topic(topic), tmp_path))
    assert not missing, "\n\n".join(missing)
