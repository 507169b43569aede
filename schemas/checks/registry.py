# SPDX-License-Identifier: Apache-2.0
"""How meaning checks are declared: a function a code, put into one table by a decorator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from schemas.facts import Facts
from schemas.findings import Path, Severity
from schemas.model import Stack


class Wrong(NamedTuple):
    """What a check found, where, and what to do about it."""

    path: Path
    message: str
    remedy: str


Check = Callable[[Stack, Facts], Iterator[Wrong]]


@dataclass(frozen=True, slots=True)
class Rule:
    code: str
    title: str
    severity: Severity
    platform: str | None
    check: Check


RULES: dict[str, Rule] = {}


def rule(code: str, title: str, severity: Severity = "error", platform: str | None = None) -> Callable[[Check], Check]:
    """Declares a check; with a platform, it is asked for stacks of that platform only."""

    def declare(check: Check) -> Check:
        if code in RULES:
            raise ValueError(f"{code} is declared twice")
        RULES[code] = Rule(code, title, severity, platform, check)
        return check

    return declare


def at(key: str, *rest: str | int) -> Path:
    """The path of a `trainyard:` key and of what lies under it."""
    return ("config", f"trainyard:{key}", *rest)
