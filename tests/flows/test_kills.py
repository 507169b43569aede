# SPDX-License-Identifier: Apache-2.0
"""`trainyard up` is killed at random points and started again. It ends in the same state as an `up` that was not
killed.

This runs one seed, which kills all processes at once. `make torture` runs many more, and
TRAINYARD_KILL_SEEDS=FIRST:LAST any.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.kill_up import Reference, kill_and_repeat, undisturbed

FIRST, _, LAST = os.environ.get("TRAINYARD_KILL_SEEDS", "7:8").partition(":")
SEEDS = range(int(FIRST), int(LAST))

pytestmark = pytest.mark.engine


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference | None:
    return undisturbed(tmp_path_factory.mktemp("undisturbed")) if len(SEEDS) > 1 else None


@pytest.mark.parametrize("seed", SEEDS)
def test_an_up_after_a_killed_up_ends_in_the_same_state(
    seed: int, reference: Reference | None, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property("killed", kill_and_repeat(tmp_path, seed, reference))
