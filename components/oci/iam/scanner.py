# SPDX-License-Identifier: Apache-2.0
"""Reads a text from left to right, and makes clear error messages for unexpected words."""

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from components.oci.iam.statement import Identified, StatementError, nearest_word

T = TypeVar("T")

_BLANK = re.compile(r"\s*")
_WORD = re.compile(r"[^\s,/:;'\"{}()=!<>]+")
_QUOTED = re.compile(r"'([^']*)'")
_PLACEHOLDER = re.compile(r"<[^<>]*>")


class Scanner:
    """A position in a text. Keywords match in any case. Blanks and line breaks have no meaning."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self._skip()

    def _skip(self) -> None:
        match = _BLANK.match(self.text, self.position)
        self.position = match.end() if match else self.position

    def _advance(self, length: int) -> None:
        self.position += length
        self._skip()

    def wrong(self, message: str, position: int | None = None) -> StatementError:
        """An error at this position of the text, or at the current one."""
        return StatementError(message, (self.position if position is None else position) + 1)

    def expected(self, what: str, among: Iterable[str] = ()) -> StatementError:
        """An error that says what was expected, what was found, and the most similar word of `among`."""
        placeholder = _PLACEHOLDER.match(self.text, self.position)
        if placeholder:
            return self.wrong(f"{placeholder.group()} is a placeholder: write the real name")
        if self.peek('"') or self.peek("\u2018") or self.peek("\u201c"):
            return self.wrong(f"expected {what}; OCI's policy language quotes with ' only")
        word = self.word()
        actual = f"`{word or self.text[self.position]}`" if self.position < len(self.text) else "the end"
        return self.wrong(f"expected {what}, found {actual}{nearest_word(word, among) if word else ''}")

    def at_end(self) -> bool:
        """Whether nothing is left."""
        return self.position >= len(self.text)

    def peek(self, symbol: str) -> bool:
        """Whether this symbol comes next."""
        return self.text.startswith(symbol, self.position)

    def accept(self, symbol: str) -> bool:
        """Consumes this symbol if it is next."""
        if self.peek(symbol):
            self._advance(len(symbol))
            return True
        return False

    def word(self) -> str:
        """The next word, which is not consumed. Empty if there is none."""
        match = _WORD.match(self.text, self.position)
        return match.group() if match else ""

    def take_word(self) -> str:
        """Consumes the next word."""
        word = self.word()
        self._advance(len(word))
        return word

    def accept_word(self, keyword: str) -> bool:
        """Consumes this keyword if it is next."""
        if self.word().lower() == keyword:
            self.take_word()
            return True
        return False

    def demand_word(self, keyword: str) -> None:
        """Consumes this keyword. Raises an error if it is not next."""
        if not self.accept_word(keyword):
            raise self.expected(f"`{keyword}`", [keyword])

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Consumes the text that matches the pattern here, and returns its first group. None if it does not match."""
        match = pattern.match(self.text, self.position)
        if match is None:
            return None
        self._advance(match.end() - match.start())
        return match.group(1)

    def quoted(self) -> str | None:
        """Consumes a quoted text if one is next."""
        if self.peek("'") and _QUOTED.match(self.text, self.position) is None:
            raise self.wrong("this quote is never closed")
        return self.match(_QUOTED)

    def name(self, what: str) -> str:
        """Consumes a name, quoted or bare. Raises an error if there is none."""
        quoted = self.quoted()
        if quoted is not None:
            return quoted
        if not self.word():
            raise self.expected(what)
        return self.take_word()

    def ocid(self) -> str:
        """Consumes an OCID, quoted or bare. Raises an error if there is none."""
        position = self.position
        text = self.name("an OCID")
        return self.built(position, lambda: Identified(text)).ocid

    def built(self, position: int, build: Callable[[], T]) -> T:
        """Builds a value. Adds the position to an error that this raises."""
        try:
            return build()
        except StatementError as error:
            raise self.wrong(error.message, position) from None
