# SPDX-License-Identifier: Apache-2.0
"""Every example, resource by resource, against a table that was checked by hand.

UPDATE_TABLES=1 writes the tables anew; read what changed before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.programs.conftest import Record
from tests.programs.tables import table
from tests.support.examples import ALL_EXAMPLES, PLATFORM

TABLES = Path(__file__).parent / "tables"


@pytest.mark.parametrize("name", ALL_EXAMPLES)
def test_an_example_makes_the_resources_of_its_table(name: str, record: Record) -> None:
    references = {PLATFORM: record("oci-platform").exports} if name == "oci-team" else {}
    written = table(record(name, references=references))
    expected = TABLES / f"{name}.txt"
    if os.environ.get("UPDATE_TABLES"):
        expected.write_text(written, "utf-8")
    assert written == expected.read_text("utf-8"), f"read the difference; UPDATE_TABLES=1 writes {expected.name} anew"


def test_no_table_is_left_over() -> None:
    assert sorted(file.stem for file in TABLES.glob("*.txt")) == list(ALL_EXAMPLES)
