# SPDX-License-Identifier: Apache-2.0
"""What a stack file may say for paper only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from components.paper.stack import PaperStack


class PaperStackFile:
    stack = PaperStack

    def rules(self) -> Mapping[str, Any]:
        from schemas.checks.registry import CheckRules, Wrong, at
        from schemas.facts import Facts

        own = CheckRules()

        @own.rule("TY990", "a sheet that is not JSON")
        def sheet(stack: PaperStack, _: Facts) -> Iterator[Wrong]:
            if not stack.sheet.endswith(".json"):
                yield Wrong(at("sheet"), f"`{stack.sheet}` is not the name of a JSON file", "end it with .json")

        return own

    def facts(self) -> Mapping[str, Any]:
        return {}


STACK_FILE = PaperStackFile()
