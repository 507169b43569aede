# SPDX-License-Identifier: Apache-2.0
"""A run that is changed and run again meets nothing of the one before it, whatever state that was left in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.counts import drawn
from tests.support.second_run import KINDS, Change, second_runs

pytestmark = pytest.mark.engine

# The old run has finished; trains on, without checkpoints; trains on with one, and `up` is killed on its way.
EACH_ONCE = (Change(held=True), Change(held=True, keep=True), Change(keep=True, killed=True))
# The other frameworks show what is theirs in two starts of one size. They, and ten in a row of all sizes, are
# torture's.
BRIEFLY = (Change(held=True), Change(keep=True, killed=True))
WHOLE = "pytorch"
OTHERS = [name for name in KINDS if name != WHOLE]


@pytest.mark.parametrize("name", [WHOLE, *drawn(OTHERS, 0)])
@pytest.mark.torture
def test_a_changed_run_is_not_affected_by_the_old_one(name: str, tmp_path: Path) -> None:
    whole = name == WHOLE
    with second_runs(tmp_path, name, sizes=None if whole else KINDS[name].sizes[:1]) as runs:
        for change in EACH_ONCE if whole else BRIEFLY:
            runs.replace(change)
