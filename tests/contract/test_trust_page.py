# SPDX-License-Identifier: Apache-2.0
"""Every claim in docs/trust.md names the test that proves it."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "trust.md").read_text("utf-8")
NAME = re.compile(r"`(test_\w+)`")
# Each row of this section is a claim. Rows of other sections give details.
COMMANDS = "Command by command"
# A limitation needs no test, but may name one.
LIMITS = "Limits"


def _defined() -> set[str]:
    files = (ROOT / "tests").rglob("test_*.py")
    return {name for file in files for name in re.findall(r"^(?:async )?def (test_\w+)", file.read_text("utf-8"), re.M)}


def _sections() -> dict[str, str]:
    parts = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_test_that_the_page_names_exists() -> None:
    named = set(NAME.findall(PAGE))
    assert len(named) > 40
    assert sorted(named - _defined()) == []
    assert not [path for path in re.findall(r"`(tests/[\w/.]+)`", PAGE) if not (ROOT / path).exists()]


def test_every_section_and_row_names_a_test() -> None:
    sections = _sections()
    assert {LIMITS, COMMANDS} <= set(sections)
    for title, text in sections.items():
        if title == LIMITS:
            continue
        assert NAME.search(text), title
        claims = re.findall(r"^- \*\*.+?(?=^- \*\*|^\||^\n|\Z)", text, re.MULTILINE | re.DOTALL)
        if title == COMMANDS:
            claims += re.findall(r"^\| `.+$", text, re.MULTILINE)
        assert not [claim for claim in claims if not NAME.search(claim)], title
