# SPDX-License-Identifier: Apache-2.0
"""The checks of paper."""

from __future__ import annotations

from collections.abc import Iterator

from components.paper.stack import PaperStack

from schemas.facts import Facts
from schemas.findings import CheckRules, Wrong, at
from schemas.stack_file import StackChecks

RULES = CheckRules()


@RULES.rule("TY990", "a sheet that is not JSON")
def sheet(stack: PaperStack, _: Facts) -> Iterator[Wrong]:
    if not stack.sheet.endswith(".json"):
        yield Wrong(at("sheet"), f"`{stack.sheet}` is not the name of a JSON file", "end it with .json")


CHECKS = StackChecks(RULES)
