# SPDX-License-Identifier: Apache-2.0
"""Findings about a stack file, and the decorator with which each meaning check registers its code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from schemas.facts import Facts

Severity = Literal["error", "warning", "note"]
# Where in the file: keys and indexes from the top, as ("config", "trainyard:jobs", "resnet", "image").
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    code: str
    path: Path
    message: str
    remedy: str
    severity: Severity = "error"
    file: str = ""
    line: int = 0
    column: int = 0


def dotted(path: Path) -> str:
    """A path as text, without the leading `config`: `trainyard:jobs.resnet.runs[0]`."""
    text = ""
    for part in path[1:] if path[:1] == ("config",) and len(path) > 1 else path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


class Wrong(NamedTuple):
    """The problem, its place, and the remedy."""

    path: Path
    message: str
    remedy: str


# A platform's check takes that platform's own Stack.
Check = Callable[[Any, "Facts"], Iterator[Wrong]]
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
    """The path of a `trainyard:` key, or of a value below it."""
    return ("config", f"trainyard:{key}", *rest)
