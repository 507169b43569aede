# SPDX-License-Identifier: Apache-2.0
"""A changed run that starts again is not affected by the previous run, whatever its state."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.counts import drawn
from tests.support.second_run import KINDS, Change, second_runs

pytestmark = pytest.mark.engine

# The old run has finished; still trains, without checkpoints; still trains with one, and `up` is killed.
EACH_ONCE = (Change(held=True), Change(held=True, keep=True), Change(keep=True, killed=True))
# For other frameworks, two starts of one size are enough. They, and ten starts in a row of all sizes, run in `make
# torture`.
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
