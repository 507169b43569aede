# SPDX-License-Identifier: Apache-2.0
"""Cuts the texts of OCI's query languages into words, quoted texts and signs, in one pass. The time is linear for
every text, however hostile."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from localcloud.api.errors import ApiError, invalid

# OCI documents no maximum length of a query.
MAXIMUM_LENGTH = 65_536
_TOKEN = re.compile(r"""(?P<space>\s+)|"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<word>[\w.$-]+)|(?P<sign>=~|!=|.)""")
_SHOWN = 200


@dataclass(frozen=True)
class Token:
    """One piece of a query. A quoted text comes without its quotes."""

    kind: Literal["word", "text", "sign"]
    text: str


class Reader:
    """Takes the tokens of a text one after the other. A token that does not fit raises InvalidParameter."""

    def __init__(self, text: str, what: str) -> None:
        self._what, self._text = what, text
        if len(text) > MAXIMUM_LENGTH:
            raise self.unreadable(f"it has more than {MAXIMUM_LENGTH} characters")
        self._tokens = self._cut(text)
        self._next = 0

    def _cut(self, text: str) -> Sequence[Token]:
        tokens: list[Token] = []
        for match in _TOKEN.finditer(text):
            kind = match.lastgroup or ""
            if kind == "sign" and match[0] in "\"'":
                raise self.unreadable("a quotation mark is not closed")
            if kind in ("double", "single"):
                tokens.append(Token("text", match[kind]))
            elif kind == "word":
                tokens.append(Token("word", match[0]))
            elif kind == "sign":
                tokens.append(Token("sign", match[0]))
        return tokens

    def unreadable(self, why: str) -> ApiError:
        return invalid(f"{self._what} cannot be read: {why} (in {self._text[:_SHOWN]!r})")

    @property
    def token(self) -> Token | None:
        """The next token; None at the end."""
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def is_sign(self, *signs: str) -> bool:
        return self.token is not None and self.token.kind == "sign" and self.token.text in signs

    def is_word(self, *words: str) -> bool:
        """Whether one of these words comes next, in upper or lower case."""
        return self.token is not None and self.token.kind == "word" and self.token.text.lower() in words

    def accept_sign(self, *signs: str) -> str:
        """Takes the next token if it is one of these signs. Returns it, or nothing."""
        return self._take_next() if self.is_sign(*signs) else ""

    def accept_word(self, *words: str) -> str:
        return self._take_next().lower() if self.is_word(*words) else ""

    def take(self, kind: str, wanted: str) -> str:
        """The next token's text, which must be of this kind."""
        if self.token is None or self.token.kind != kind:
            raise self.expected(wanted)
        return self._take_next()

    def expect_sign(self, sign: str) -> None:
        if not self.accept_sign(sign):
            raise self.expected(sign)

    def expected(self, wanted: str) -> ApiError:
        """The refusal of a query that does not go on with what is wanted."""
        return self.unreadable(f"expected {wanted} {f'at {self.token.text[:40]!r}' if self.token else 'at its end'}")

    def _take_next(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1].text
