# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from catalog.platforms import platforms
from schemas.checks import own_rules, shared_rules
from schemas.findings import CHAPTERS, RULES, CheckRules, Wrong
from schemas.findings_page import PAGE, render_findings_page


def test_the_page_of_findings_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == render_findings_page(), "run `python -m schemas.findings_page`"


def test_a_code_says_its_chapter_and_its_platform() -> None:
    numbers = {0: shared_rules(), **{row: own_rules(name) for row, name in enumerate(platforms(), 1)}}
    for row, own in numbers.items():
        for code in own:
            chapter, *rest = map(int, code.removeprefix("TY"))
            assert chapter in CHAPTERS, code
            assert len(rest) == 2 or (len(rest) == 3 and rest[0] == row), code


@pytest.mark.parametrize("table", [RULES, CheckRules()])
def test_a_code_that_is_taken_is_one_message(table: CheckRules) -> None:
    """Also if a check of every platform has it, and a platform takes it."""

    def is_twice(stack: object, facts: object) -> Iterator[Wrong]:
        return iter(())

    with pytest.raises(SystemExit) as ended:
        table.rule("TY101", "something else")(is_twice)
    taken = r"TY101 is taken: `an address block is malformed` \(network_checks.py:\d+\)"
    assert re.match(rf"trainyard: test_findings_page.py:\d+: {taken}", str(ended.value))


def test_a_finding_code_has_one_meaning_on_every_platform() -> None:
    """Every code is on the page, because people look codes up there."""
    titles: dict[str, set[str]] = {}
    for own in (shared_rules(), *map(own_rules, platforms())):
        for code, rule in own.items():
            titles.setdefault(code, set()).add(rule.title)
    assert {code: several for code, several in titles.items() if len(several) > 1} == {}
