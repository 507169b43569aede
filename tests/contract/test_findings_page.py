# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

from schemas.page import render


def test_the_page_of_findings_is_fresh() -> None:
    page = Path(__file__).parents[2] / "docs" / "findings.md"
    assert page.read_text("utf-8") == render(), "run `python -m schemas.page > docs/findings.md`"
