# SPDX-License-Identifier: Apache-2.0
"""The part of the Logging query language that clients use to read a run's lines:
`search "compartment/group/log", … | where field = 'text*' and … | sort by datetime desc | limit 10`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from localcloud.server.api_errors import ApiError, invalid_parameter
from localcloud.server.http import whole_number

# OCI documents no maximum length of a query.
MAXIMUM_LENGTH = 65_536
_TOKEN = re.compile(r"""(?P<space>\s+)|"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<word>[\w.$-]+)|(?P<sign>=~|!=|.)""")
_SHOWN = 200
# SQLite limits how deeply the conditions may be nested.
MOST_CONDITIONS, MOST_SCOPES = 500, 100
_MOST_LINES = 99_999
_COLUMNS = {
    "source": "source",
    "subject": "subject",
    "type": "type",
    "id": "id",
    "data.message": "data",
    "data": "data",
}
# Fields of an entry that is JSON: those of VCN flow logs, which are texts or numbers.
_OF_RECORD = "CASE WHEN json_valid(data) THEN json_extract(data, '$.{}') END"
_TEXTS = ("action", "sourceAddress", "destinationAddress", "protocolName")
_NUMBERS = ("data.sourcePort", "data.destinationPort", "data.protocol")
_COLUMNS |= {f"data.{name}": f"coalesce('' || {_OF_RECORD.format(name)}, '')" for name in _TEXTS}
_COLUMNS |= {name: _OF_RECORD.format(name.removeprefix("data.")) for name in _NUMBERS}
_TIMES = ("datetime", "logcontent.time", "time")
# The SQL function that matches a wildcard pattern.
FITS = "fits"


@dataclass(frozen=True)
class Token:
    """A token of a query. The quotes of a quoted text are removed."""

    kind: Literal["word", "text", "sign"]
    text: str


class Reader:
    """Reads the tokens of a text one after the other. An unexpected token raises InvalidParameter."""

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
        return invalid_parameter(f"{self._what} cannot be read: {why} (in {self._text[:_SHOWN]!r})")

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
        """Takes the next token if it is one of these signs. Returns it, or an empty text."""
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
        """The refusal of a query in which the expected token is missing."""
        return self.unreadable(f"expected {wanted} {f'at {self.token.text[:40]!r}' if self.token else 'at its end'}")

    def _take_next(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1].text


@dataclass(frozen=True)
class LogQuery:
    """A parsed search, ready for SQL."""

    scopes: tuple[tuple[str, ...], ...]
    conditions: tuple[tuple[str, str | int], ...] = ()
    order: str = "DESC"
    limit: int = 0
    joins: tuple[str, ...] = ()

    @property
    def where(self) -> tuple[str, list[str | int]]:
        """The SQL condition and its values."""
        if not self.conditions:
            return "1", []
        text = self.conditions[0][0]
        for join, (condition, _) in zip(self.joins, self.conditions[1:], strict=True):
            text += f" {join} {condition}"
        return f"({text})", [value for _, value in self.conditions]


def parse_log_query(text: str) -> LogQuery:
    reader = Reader(text, "The search query")
    if not reader.accept_word("search"):
        raise reader.unreadable("it must begin with search")
    scopes: list[tuple[str, ...]] = []
    while not scopes or reader.accept_sign(","):
        place = reader.take("text", 'a scope such as "compartment/group/log"')
        if not place:
            raise reader.unreadable("a scope is empty")
        scopes.append(tuple(place.split("/")[:3]))
        if len(scopes) > MOST_SCOPES:
            raise reader.unreadable(f"it has more than {MOST_SCOPES} scopes")
    query = LogQuery(tuple(scopes))
    while reader.accept_sign("|"):
        query = _parse_stage(query, reader)
    if reader.token:
        raise reader.expected("|")
    return query


def query_scopes(text: str) -> tuple[tuple[str, ...], ...]:
    """The scopes that a query searches."""
    return parse_log_query(text).scopes


def _parse_stage(query: LogQuery, reader: Reader) -> LogQuery:
    if reader.accept_word("where"):
        conditions, joins = list(query.conditions), list(query.joins)
        join = "and" if conditions else ""
        while True:
            joins += [join.upper()] if join else []
            conditions.append(_parse_condition(reader))
            if len(conditions) > MOST_CONDITIONS:
                raise reader.unreadable(f"it has more than {MOST_CONDITIONS} conditions")
            join = reader.accept_word("and", "or")
            if not join:
                return replace(query, conditions=tuple(conditions), joins=tuple(joins))
    if reader.accept_word("sort"):
        if not reader.accept_word("by") or not reader.accept_word(*_TIMES):
            raise reader.unreadable("the local cloud sorts by datetime only")
        return replace(query, order=(reader.accept_word("asc", "desc") or "asc").upper())
    if reader.accept_word("limit", "head"):
        text = reader.take("word", "a number")
        limit = whole_number(text)
        if limit is None or limit > _MOST_LINES:
            raise reader.unreadable(f"{text[:40]!r} is not a number of lines")
        return replace(query, limit=limit)
    raise reader.expected("where, sort by datetime or limit (the local cloud supports no other stage)")


def _parse_condition(reader: Reader) -> tuple[str, str | int]:
    name = reader.take("word", "the field of a condition").removeprefix("logContent.")
    column = _COLUMNS.get(name)
    if column is None:
        raise reader.unreadable(f"unknown field {name[:40]}: one of {', '.join(_COLUMNS)}")
    operator = reader.accept_sign("=", "!=") or reader.accept_word("like")
    if not operator:
        raise reader.expected("=, != or like")
    if name in _NUMBERS:
        number = whole_number(reader.take("word", "a number"))
        if number is None or operator == "like":
            raise reader.unreadable(f"{name} is compared with a whole number, by = or !=")
        return f"{column} {operator} ?", number
    value = reader.take("text", "a quoted text")
    negation = "NOT " if operator == "!=" else ""
    return (f"{negation}{FITS}(?, {column})" if "*" in value else f"{negation}{column} = ?"), value
