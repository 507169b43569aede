# SPDX-License-Identifier: Apache-2.0
"""Filter patterns of CloudWatch Logs for lines of text. moto reads some of them, and lets every line through otherwise.

A pattern is a list of terms: each must be in the line, `-` before a term keeps lines with it out, `?` before all terms
asks for any of them. Quotes hold what is not letters, digits and underscores.
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
    """Which lines fit a pattern. moto calls it by the name of its own method."""

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
    """The filter of a pattern. AWS's refusal if it is none, ours if nothing here reads it."""
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
    """Once in a process."""
    models.EventMessageFilter = read_pattern
