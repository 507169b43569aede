# SPDX-License-Identifier: Apache-2.0
"""Filter patterns of CloudWatch Logs for lines of text. moto reads only some of them, and else returns all lines.

A pattern is a list of terms, and a line must contain all of them. `-` before a term excludes lines with it. With `?`
before the terms, one of them is enough. Terms with other characters than letters, digits and underscores are quoted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from localcloud.aws.errors import Reason, RefusalError

_TERM = re.compile(r'\s*(?P<sign>[-?]?)(?:"(?P<phrase>(?:[^"\\]|\\.)*)"|(?P<word>[^\s"]+))(?=\s|$)')
_WORD = re.compile(r"\w+", re.ASCII)


@dataclass(frozen=True)
class LineFilter:
    """Decides which lines match a pattern. moto calls its method `matches`."""

    wanted: tuple[str, ...]
    unwanted: tuple[str, ...]
    optional: tuple[str, ...]

    def matches(self, message: str) -> bool:
        if any(term in message for term in self.unwanted):
            return False
        if self.wanted or not self.optional:
            return all(term in message for term in self.wanted)
        return any(term in message for term in self.optional)


@lru_cache(maxsize=64)
def read_pattern(pattern: str | None) -> LineFilter:
    """Reads a pattern. Raises AWS's refusal if it is not valid, and our own if it is not supported here."""
    text = (pattern or "").strip()
    if text.startswith(("{", "[", "%")):
        raise RefusalError(Reason.UNKNOWN_OPERATION, "The local AWS reads filter patterns of terms only")
    terms: dict[str, list[str]] = {"": [], "-": [], "?": []}
    at = 0
    while at < len(text):
        found = _TERM.match(text, at)
        if found is None:
            raise _invalid("Invalid filter pattern")
        if found["word"] is not None and not _WORD.fullmatch(found["word"]):
            raise _invalid(f"Invalid character(s) in term '{found['word'][:100]}'")
        terms[found["sign"]].append(found["word"] or re.sub(r"\\(.)", r"\1", found["phrase"]))
        at = found.end()
    return LineFilter(tuple(terms[""]), tuple(terms["-"]), tuple(terms["?"]))


def _invalid(message: str) -> RefusalError:
    return RefusalError(Reason.REFUSED, message, "InvalidParameterException")


def install(models: Any) -> None:
    """Changes moto's module of models. Called once in a process."""
    models.EventMessageFilter = read_pattern
