# SPDX-License-Identifier: Apache-2.0
"""Runs that are changed and started again, ten times in a row. The framework, and how the old run ends, are random."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from tests.support.counts import FIRST, wanted
from tests.support.second_run import KINDS, Change, second_runs

pytestmark = [pytest.mark.engine, pytest.mark.torture]

IN_A_ROW = 10
CHAINS = -(-wanted(sample=IN_A_ROW, full=200) // IN_A_ROW)
# The most seconds from the first node of the new start to the kill of `up`.
LATEST_SECONDS = 6.0


def _changes(random: Random) -> Iterator[Change]:
    for _ in range(IN_A_ROW):
        yield Change(
            held=random.random() < 0.6, keep=random.random() < 0.4, killed=random.random() < 0.4,
            later=random.uniform(0, LATEST_SECONDS),
        )  # fmt: skip


@pytest.mark.parametrize("seed", range(FIRST, FIRST + CHAINS))
def test_ten_replacements_in_a_row_end_as_undisturbed_runs(
    seed: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    name = list(KINDS)[seed % len(KINDS)]
    with second_runs(tmp_path, name) as runs:
        for change in _changes(Random(seed)):
            record_property(name, str(change))
            runs.replace(change)
