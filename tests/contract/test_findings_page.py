# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from catalog.platforms import platforms
from schemas.checks import rules
from schemas.page import PAGE, render
from schemas.platforms import stack_file


def test_the_page_of_findings_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == render(), "run `python -m schemas.page`"


def test_a_finding_code_has_one_meaning_on_every_platform() -> None:
    """Every code is on the page, because people look codes up there."""
    titles: dict[str, set[str]] = {}
    for own in (rules(), *(stack_file(name).rules() for name in platforms())):
        for code, rule in own.items():
            titles.setdefault(code, set()).add(rule.title)
    assert {code: several for code, several in titles.items() if len(several) > 1} == {}
