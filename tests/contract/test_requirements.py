# SPDX-License-Identifier: Apache-2.0
"""Every requirement in a platform's documents is in the table of its page, with the names of its tests."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The page of each platform, and the document whose requirements it lists.
PAGES = {"aws-dl1.md": "003", "openpai.md": "004"}
_TICKED = re.compile(r"`([^`]+)`")


def table(page: str) -> list[tuple[str, str]]:
    """The quoted lines and the tests of each row."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    body = text.partition("| they say | what trainyard does | tests |\n| --- | --- | --- |\n")[2]
    rows = [line.strip("| ").split(" | ") for line in body.splitlines() if line.startswith("|")]
    return [(row[0], row[2]) for row in rows]


ROWS = [row for page in PAGES for row in table(page)]


@pytest.mark.parametrize(("page", "seed"), PAGES.items())
def test_every_line_of_the_documents_is_in_the_table_once(page: str, seed: str) -> None:
    rows = tomllib.loads((ROOT / "tests/contract/seeds.toml").read_text("utf-8"))["row"]
    wanted = [row["line"] for row in rows if row["seed"] == seed]
    assert sorted(line for they_say, _ in table(page) for line in _TICKED.findall(they_say)) == sorted(wanted)


@pytest.mark.parametrize(("they_say", "tests"), ROWS, ids=[they_say[:60] for they_say, _ in ROWS])
def test_every_test_that_a_requirement_names_exists(they_say: str, tests: str) -> None:
    named = _TICKED.findall(tests)
    assert named
    for one in named:
        file, _, name = one.partition("::")
        functions = [
            node.name for node in ast.parse((ROOT / file).read_text("utf-8")).body if isinstance(node, ast.FunctionDef)
        ]
        assert name in functions, one
