# SPDX-License-Identifier: Apache-2.0
"""How often launchers look for one another in the bucket: often enough for nodes, and not too often for the bucket."""

import pytest

from launcher.board_client import meeting_interval, watching_interval


@pytest.mark.parametrize("nodes", [2, 8, 64, 512])
def test_meeting_nodes_poll_often_at_first(nodes: int) -> None:
    at_first, later = meeting_interval(nodes, 0.1), meeting_interval(nodes, 600.0)
    assert at_first <= 0.05 + nodes / 160
    assert 0.35 <= later <= 0.6


@pytest.mark.parametrize("nodes", [2, 8, 64, 96])
def test_nodes_poll_rarely_during_training(nodes: int) -> None:
    assert nodes / watching_interval(nodes) <= 16
