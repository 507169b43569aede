# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/aws.md are those of the catalog, and the page names the codes that checks have."""

from __future__ import annotations

import re

from schemas.judge import titles_by_code
from tests.support.aws_page import PAGE, render_aws_page


def test_the_tables_of_the_page_are_the_rows_of_the_catalog() -> None:
    text = PAGE.read_text("utf-8")
    assert text == render_aws_page(text), "run `python -m tests.support.aws_page`"


def test_the_page_names_findings_that_exist() -> None:
    assert set(re.findall(r"\bTY\d+\b", PAGE.read_text("utf-8"))) <= titles_by_code().keys()
