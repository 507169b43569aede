# SPDX-License-Identifier: Apache-2.0
"""The one error of this room, shaped for people: where, what was found, what would be right."""

from collections.abc import Iterable


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
