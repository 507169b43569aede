# SPDX-License-Identifier: Apache-2.0
"""How meaning checks are declared: each code has one function, which a decorator puts into a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from schemas.facts import Facts
from schemas.findings import Path, Severity


class Wrong(NamedTuple):
    """What is wrong, where, and what to do about it."""

    path: Path
    message: str
    remedy: str


# A platform's check takes that platform's own Stack.
Check = Callable[[Any, Facts], Iterator[Wrong]]
Declare = Callable[[Check], Check]


@dataclass(frozen=True, slots=True)
class CheckRule:
    code: str
    title: str
    severity: Severity
    check: Check


class CheckRules(dict[str, CheckRule]):
    """Checks by code. One table has the checks for all platforms; each platform has another for its own."""

    def rule(self, code: str, title: str, severity: Severity = "error") -> Declare:
        """Declares a check."""

        def declare(check: Check) -> Check:
            if code in self:
                raise ValueError(f"{code} is declared twice")
            self[code] = CheckRule(code, title, severity, check)
            return check

        return declare


RULES = CheckRules()
rule = RULES.rule


def at(key: str, *rest: str | int) -> Path:
    """The path of a `trainyard:` key and of what lies under it."""
    return ("config", f"trainyard:{key}", *rest)
