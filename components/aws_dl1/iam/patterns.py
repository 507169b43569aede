# SPDX-License-Identifier: Apache-2.0
"""Texts with `*` for anything and `?` for one character, as IAM writes them, and its variables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_LITERALS = {"*": "*", "?": "?", "$": "$"}


class UnknownVariableError(Exception):
    """A variable that this request has no value for."""


def fits(pattern: str, text: str) -> bool:
    """Whether the text fits. It goes back to the last star only, so many stars take no long time."""
    place = at = 0
    star, mark = -1, 0
    while at < len(text):
        if place < len(pattern) and (pattern[place] == "?" or pattern[place] == text[at]) and pattern[place] != "*":
            place, at = place + 1, at + 1
        elif place < len(pattern) and pattern[place] == "*":
            star, mark = place, at
            place += 1
        elif star >= 0:
            mark += 1
            place, at = star + 1, mark
        else:
            return False
    return not pattern[place:].strip("*")


def fits_action(pattern: str, action: str) -> bool:
    """Actions are compared without regard to case."""
    return fits(pattern.lower(), action.lower())


def fits_arn(pattern: str, arn: str) -> bool:
    """Whether an ARN fits. A wildcard in one of the first five parts does not reach over a colon."""
    if pattern == "*" or arn == "*":
        return pattern == "*"
    wanted, parts = pattern.split(":", 5), arn.split(":", 5)
    return len(wanted) == len(parts) and all(fits(one, other) for one, other in zip(wanted, parts, strict=True))


def filled(text: str, keys: Mapping[str, Sequence[str]]) -> str:
    """The text with the request's values in place of variables."""

    def value(match: re.Match[str]) -> str:
        name = match[1].split(",")[0].strip()
        if name in _LITERALS:
            return _LITERALS[name]
        values = next((values for key, values in keys.items() if key.lower() == name.lower()), ())
        if len(values) != 1:
            raise UnknownVariableError(name)
        return values[0]

    return _VARIABLE.sub(value, text) if "${" in text else text
