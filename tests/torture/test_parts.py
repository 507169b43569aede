# SPDX-License-Identifier: Apache-2.0
"""Every test that only `make torture` runs belongs to at least one of its parts."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.torture.__main__ import PARTS, ROOT, Part

MARK = re.compile(r"^(@|pytestmark = .*|.*\bmarks=)pytest\.mark\.torture\b", re.MULTILINE)
MARKED = sorted(file for file in (ROOT / "tests").rglob("test_*.py") if MARK.search(file.read_text()))


def _runs(part: Part, file: Path) -> bool:
    left = [option.removeprefix("--ignore=") for option in part.options if option.startswith("--ignore=")]
    return _below(file, part.tests) and not _below(file, left)


def _below(file: Path, places: Sequence[str]) -> bool:
    return any(file.is_relative_to(ROOT / place) for place in places)


@pytest.mark.parametrize("file", MARKED, ids=lambda file: file.stem)
def test_every_torture_test_is_in_a_part(file: Path) -> None:
    assert [name for name, part in PARTS.items() if _runs(part, file)]
