# SPDX-License-Identifier: Apache-2.0
"""Findings about a stack file, and the decorator with which each meaning check registers its code.

A code is never used again for something else, because users look codes up and silence them. A new code has four digits:
its chapter (`CHAPTERS`), its platform (0 for every one; otherwise the number of its row in catalog/platforms.toml), and
two that count from 00. So each platform has a hundred codes in each chapter: TY8000 is about runs on every platform,
TY1201 about networks on the second platform. Codes with three digits are older than this rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
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


def dotted_path(path: Path) -> str:
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


CHAPTERS: Mapping[int, str] = {
    0: "the shape of the file",
    1: "networks",
    2: "ports",
    3: "images",
    4: "frameworks, roles and their options",
    5: "environment variables and secrets",
    6: "names, tags and existing resources",
    7: "access, other stacks and waivers",
    8: "jobs: machines, code, commands, data and runs",
    9: "what a platform cannot do",
}


class CheckRules(dict[str, CheckRule]):
    """Checks by code. One table has the checks for all platforms; each platform has another for its own."""

    def rule(self, code: str, title: str, severity: Severity = "error") -> Declare:
        """Declares a check."""

        def declare(check: Check) -> Check:
            for taken in (self, RULES):
                if code in taken:
                    # Ends the program with one message: no check is complete without this one.
                    raise SystemExit(
                        f"trainyard: {_place_of_check(check)}: {code} is taken: `{taken[code].title}` "
                        f"({_place_of_check(taken[code].check)}). Use a free code (schemas/findings.py says which)."
                    )
            self[code] = CheckRule(code, title, severity, check)
            return check

        return declare


def _place_of_check(check: Check) -> str:
    code = check.__code__
    return f"{FilePath(code.co_filename).name}:{code.co_firstlineno}"


RULES = CheckRules()
rule = RULES.rule


def at(key: str, *rest: str | int) -> Path:
    """The path of a `trainyard:` key, or of a value below it."""
    return ("config", f"trainyard:{key}", *rest)
