# SPDX-License-Identifier: Apache-2.0
"""A run that is changed and run again meets nothing of the one before it, whatever state that was left in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.second_run import KINDS, Change, second_runs

pytestmark = pytest.mark.engine

# The old run has finished; trains on, without checkpoints; trains on with one, and `up` is killed on its way.
EACH_ONCE = (Change(held=True), Change(held=True, keep=True), Change(keep=True, killed=True))
# Ten in a row: what is left of many starts lies in the bucket, and the one before is always alive.
TEN = (*EACH_ONCE, *(Change(held=True, sizes=(2 + number % 2,)) for number in range(7)))


@pytest.mark.parametrize("name", KINDS)
def test_a_changed_run_ends_as_one_alone_whatever_became_of_the_old_one(name: str, tmp_path: Path) -> None:
    with second_runs(tmp_path, name) as runs:
        for change in TEN if name == "pytorch" else EACH_ONCE:
            runs.replace(change)
