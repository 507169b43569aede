# SPDX-License-Identifier: Apache-2.0
"""Texts with `*` for anything, as statements and queries of metrics and logs write them."""

from __future__ import annotations

from collections.abc import Iterable


def fits(pattern: str, text: str) -> bool:
    """Whether the text has the pieces between the pattern's `*` in their order. Unlike GLOB and regular expressions it
    never goes back in the text, so many stars take no longer than one."""
    first, *middle = pattern.split("*")
    if not middle:
        return text == pattern
    last = middle.pop()
    if not text.startswith(first) or not text.endswith(last) or len(first) + len(last) > len(text):
        return False
    position, end = len(first), len(text) - len(last)
    for piece in middle:
        start = text.find(piece, position, end)
        if start < 0:
            return False
        position = start + len(piece)
    return True


class StatementError(ValueError):
    """A policy statement or matching rule that OCI would refuse; `column` counts from 1, None if there is no text."""

    def __init__(self, message: str, column: int | None = None) -> None:
        super().__init__(message if column is None else f"column {column}: {message}")
        self.message = message
        self.column = column


def nearest(word: str, words: Iterable[str]) -> str:
    """`; did you mean …?` for the word most like it, or an empty text. It ends an error message."""
    # Only a mistake pays for this import.
    from difflib import get_close_matches

    by_lower = {name.lower(): name for name in words}
    close = get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return f"; did you mean `{by_lower[close[0]]}`?" if close else ""
