# SPDX-License-Identifier: Apache-2.0
"""The part of the Logging query language that clients use to read a run's lines:
`search "compartment/group/log", … | where field = 'text*' and … | sort by datetime desc | limit 10`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from localcloud.api.errors import ApiError

_SCOPE = re.compile(r'"([^"]+)"')
_STAGE = re.compile(r"""\|(?=(?:[^'"]|'[^']*'|"[^"]*")*$)""")
_CONDITION = re.compile(r"""([\w.]+)\s*(!=|=|like)\s*(?:'([^']*)'|"([^"]*)")""", re.IGNORECASE)
_COLUMNS = {
    "source": "source",
    "subject": "subject",
    "type": "type",
    "id": "id",
    "data.message": "data",
    "data": "data",
}


@dataclass(frozen=True)
class Query:
    """What to look for, ready for SQL."""

    scopes: tuple[tuple[str, ...], ...]
    conditions: tuple[tuple[str, str], ...] = ()
    order: str = "DESC"
    limit: int = 0
    joins: tuple[str, ...] = field(default=())

    @property
    def where(self) -> tuple[str, list[str]]:
        """A condition and its values."""
        if not self.conditions:
            return "1", []
        text = self.conditions[0][0]
        for join, (condition, _) in zip(self.joins, self.conditions[1:], strict=True):
            text += f" {join} {condition}"
        return f"({text})", [value for _, value in self.conditions]


def parse(text: str) -> Query:
    stages = [stage.strip() for stage in _STAGE.split(text)]
    if not stages[0].lower().startswith("search "):
        raise _unreadable(text, "it must begin with search")
    scopes = _scopes(stages[0])
    if not scopes:
        raise _unreadable(text, 'search needs a scope such as "compartment/group/log"')
    query = Query(scopes)
    for stage in stages[1:]:
        query = _staged(query, stage, text)
    return query


def scopes_of(text: str) -> tuple[tuple[str, ...], ...]:
    """Where a query searches, whatever else it says."""
    return _scopes(_STAGE.split(text)[0])


def _scopes(stage: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(scope.split("/")[:3]) for scope in _SCOPE.findall(stage))


def _staged(query: Query, stage: str, text: str) -> Query:
    word = stage.split(" ", 1)[0].lower()
    if word == "where":
        conditions, joins = _conditions(stage[len(word) :].strip(), text)
        return replace(
            query,
            conditions=query.conditions + conditions,
            joins=query.joins + (("AND",) if query.conditions else ()) + joins,
        )
    if match := re.fullmatch(r"sort\s+by\s+(?:datetime|logContent\.time|time)(?:\s+(asc|desc))?", stage, re.IGNORECASE):
        return replace(query, order=(match[1] or "asc").upper())
    if match := re.fullmatch(r"(?:limit|head)\s+(\d{1,5})", stage, re.IGNORECASE):
        return replace(query, limit=int(match[1]))
    raise _unreadable(text, f"the local cloud understands where, sort by datetime and limit, not {stage!r}")


def _conditions(stage: str, text: str) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    conditions, joins, position = [], [], 0
    while match := _CONDITION.match(stage, position):
        name, operator, single, double = match.groups()
        column = _COLUMNS.get(name.removeprefix("logContent."))
        if column is None:
            raise _unreadable(text, f"unknown field {name}: one of {', '.join(_COLUMNS)}")
        conditions.append(_condition(column, operator, single if single is not None else double))
        rest = re.match(r"\s+(and|or)\s+", stage[match.end() :], re.IGNORECASE)
        if rest is None:
            position = match.end()
            break
        joins.append(rest[1].upper())
        position = match.end() + rest.end()
    if not conditions or stage[position:].strip():
        raise _unreadable(text, f"cannot read the condition at {stage[position:][:40]!r}")
    return tuple(conditions), tuple(joins)


def _condition(column: str, operator: str, value: str) -> tuple[str, str]:
    negation = "NOT " if operator == "!=" else ""
    if "*" not in value:
        return f"{negation}{column} = ?", value
    pattern = re.sub(r"([\[\]?])", r"[\1]", value)
    return f"{negation}{column} GLOB ?", pattern


def _unreadable(text: str, why: str) -> ApiError:
    return ApiError(400, "InvalidParameter", f"The search query cannot be read: {why} (in {text[:200]!r})")
