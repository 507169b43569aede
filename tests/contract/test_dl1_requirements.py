# SPDX-License-Identifier: Apache-2.0
"""Every line of the documents on DL1 stands in a test by name: the table of docs/aws-dl1.md is held to both."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "aws-dl1.md").read_text("utf-8")
_TICKED = re.compile(r"`([^`]+)`")


def table() -> list[tuple[str, str]]:
    """What the documents say, and the tests, of each row."""
    body = PAGE.partition("| they say | what trainyard does | tests |\n| --- | --- | --- |\n")[2]
    rows = [line.strip("| ").split(" | ") for line in body.splitlines() if line.startswith("|")]
    return [(row[0], row[2]) for row in rows]


ROWS = table()


def test_every_line_of_the_documents_is_in_the_table_once() -> None:
    rows = tomllib.loads((ROOT / "tests/contract/seeds.toml").read_text("utf-8"))["row"]
    wanted = [row["line"] for row in rows if row["seed"] == "003"]
    assert sorted(line for they_say, _ in ROWS for line in _TICKED.findall(they_say)) == sorted(wanted)


@pytest.mark.parametrize(("they_say", "tests"), ROWS, ids=[they_say[:60] for they_say, _ in ROWS])
def test_every_test_that_is_named_is_there(they_say: str, tests: str) -> None:
    named = _TICKED.findall(tests)
    assert named
    for one in named:
        file, _, name = one.partition("::")
        functions = [
            node.name for node in ast.parse((ROOT / file).read_text("utf-8")).body if isinstance(node, ast.FunctionDef)
        ]
        assert name in functions, one
