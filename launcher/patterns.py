# SPDX-License-Identifier: Apache-2.0
"""The globs of `keep:`. `*` and `?` stay within one folder, `**` stands for any number of folders, and a folder's name
means everything in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

_ANY = "**"


@dataclass(frozen=True)
class Patterns:
    """Each pattern as the parts of its path."""

    patterns: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, texts: Iterable[str]) -> Patterns:
        return cls(tuple(tuple(part for part in text.split("/") if part not in ("", ".")) for text in texts))

    def match(self, name: str) -> bool:
        """Whether some pattern means this file."""
        parts = name.split("/")
        return any(_matches(pattern, parts) for pattern in self.patterns)

    def spell(self, folder: str) -> bool:
        """Whether some pattern has this folder's own name in it, letter by letter."""
        return any(folder in pattern for pattern in self.patterns)


def _matches(pattern: tuple[str, ...], parts: list[str]) -> bool:
    """Walks all ways through the pattern at once: with several `**` there may be very many."""
    if not pattern:
        return False
    places = _with_skipped(pattern, {0})
    for part in parts:
        if len(pattern) in places:
            return True
        steps = {at if pattern[at] == _ANY else at + 1 for at in places if _takes(pattern[at], part)}
        places = _with_skipped(pattern, steps)
    return len(pattern) in places


def _takes(pattern: str, part: str) -> bool:
    return pattern == _ANY or fnmatchcase(part, pattern)


def _with_skipped(pattern: tuple[str, ...], places: set[int]) -> set[int]:
    """`**` may also stand for no folder at all."""
    every = set(places)
    for at in sorted(places):
        while at < len(pattern) and pattern[at] == _ANY:
            at += 1
            every.add(at)
    return every
