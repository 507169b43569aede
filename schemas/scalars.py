# SPDX-License-Identifier: Apache-2.0
"""How Pulumi's engine reads scalars without quotes. It mostly follows YAML 1.2: `yes` is a text, 0o17 a number."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from catalog.nested import Path, walk_places, walk_values

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INTEGER = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|[1-9][0-9]*|0)")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ][0-9:.]+.*)?")
_NOT_FINITE = re.compile(r"\.nan|[-+]?\.inf", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Unclear:
    """A scalar without quotes that the engine would read as something unintended."""

    kind: str


def resolve_scalar(text: str) -> Any:
    """The value that the engine reads from a scalar without quotes."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "0123456789+-.":
        return text
    if _DATE.fullmatch(text):
        return Unclear("a date")
    if _NOT_FINITE.fullmatch(text):
        return Unclear("a number that is not finite")
    digits = text.replace("_", "") if text[0] != "." else text
    if number := _INTEGER.fullmatch(digits):
        sign, digits = number[1], number[2].lower()
        if len(digits) > 80:
            return text
        base = 0 if digits[:2] in ("0x", "0b", "0o") else 8 if digits[0] == "0" else 10
        return within_64_bits(int(sign + digits, base))
    if _FLOAT.fullmatch(digits) and math.isfinite(value := float(digits)):
        return value
    return text


def within_64_bits(value: int) -> int | float:
    """The number as the engine keeps it: signed 64-bit integers stay, larger ones become floating-point numbers."""
    return value if -(2**63) <= value < 2**63 else float(value)


def finite_number(text: str) -> float:
    """The number. Raises ValueError for `NaN`, `Infinity` and too large numbers, which only Python's JSON accepts."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite number")
    return value


def is_secret(value: Any) -> bool:
    """Whether a value of a stack file is a secret: `secure:` with a text, and nothing beside it. To Pulumi, anything
    else is a mapping: a role may be named `secure`."""
    return isinstance(value, Mapping) and set(value) == {"secure"} and isinstance(value["secure"], str)


def has_secret(value: Any) -> bool:
    """Whether a secret is anywhere in the value."""
    return any(map(is_secret, walk_values(value)))


def secrets_in(value: Any) -> Iterator[tuple[Path, str]]:
    """The encrypted text of each secret in the value, with its place."""
    for path, part in walk_places(value):
        if is_secret(part):
            yield path, part["secure"]
