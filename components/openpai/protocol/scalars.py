# SPDX-License-Identifier: Apache-2.0
"""Bare values of YAML as js-yaml 3.13 reads them, which the REST server uses: lib/js-yaml/type/*.js of that package.

YAML 1.1's `yes`, `no`, `on`, `off` and `=` are texts there, `1e3` is a number, and a date is none of the values that a
job has.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_INTEGERS = (
    r"[-+]?0",
    r"[-+]?0b[01_]*[01]",
    r"[-+]?0x[0-9a-fA-F_]*[0-9a-fA-F]",
    r"[-+]?0[0-7_]*[0-7]",
    r"[-+]?[1-9](?:[0-9_]*[0-9])?(?::[0-5]?[0-9])*",
)
_FLOATS = (
    r"[-+]?(?:0|[1-9][0-9_]*)(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?",
    r"\.[0-9_]+(?:[eE][-+]?[0-9]+)?",
    r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*",
    r"[-+]?\.(?:inf|Inf|INF)",
    r"\.(?:nan|NaN|NAN)",
)
_DATE = r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_TIME = (
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})(?:[Tt]|[ \t]+)"
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:\.[0-9]*)?"
    r"(?:[ \t]*(?:Z|(?P<sign>[-+])(?P<east>[0-9]{1,2})(?::(?P<more>[0-9]{2}))?))?"
)
_MOMENTS = (re.compile(_DATE), re.compile(_TIME))
_ROWS = (
    ("null", ("~|null|Null|NULL|",)),
    ("bool", ("true|True|TRUE|false|False|FALSE",)),
    ("int", _INTEGERS),
    ("float", tuple(f"(?:{each})(?<!_)" for each in _FLOATS)),
    ("timestamp", (re.sub(r"\?P<\w+>", "", _DATE), re.sub(r"\?P<\w+>", "", _TIME))),
    ("merge", ("<<",)),
)
RESOLVERS = tuple((f"tag:yaml.org,2002:{name}", re.compile(rf"(?:{'|'.join(texts)})\Z")) for name, texts in _ROWS)
# JavaScript has one kind of numbers: below this one, 2.0 and 2 are the same.
_EXACT = 1 << 53


class Moment(str):
    """A date as JavaScript writes it. It is no text: a field that wants one refuses it."""

    __slots__ = ()


def moment(text: str) -> Moment:
    parts = next((found for each in _MOMENTS if (found := each.fullmatch(text))), None)
    if parts is None:
        raise ValueError("this is not a date")
    part = {name: int(value) for name, value in parts.groupdict().items() if value and name != "sign"}
    years, month = divmod(part["month"] - 1, 12)
    when = datetime(part["year"] + years, month + 1, 1, tzinfo=UTC) + timedelta(
        days=part["day"] - 1, hours=part.get("hour", 0), minutes=part.get("minute", 0), seconds=part.get("second", 0)
    )
    east = timedelta(hours=part.get("east", 0), minutes=part.get("more", 0))
    when += east if parts.groupdict().get("sign") == "-" else -east
    return Moment(when.strftime("%a %b %d %Y %H:%M:%S GMT+0000 (Coordinated Universal Time)"))


def number(value: float) -> int | float:
    return int(value) if abs(value) < _EXACT and value.is_integer() else value
