# SPDX-License-Identifier: Apache-2.0
"""Reads values that arrive as text, in paths, queries, headers and JSON. It refuses what no other module should have
to handle: huge numbers, infinities, and text that is not valid Unicode."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, unquote_plus

from localcloud.api.errors import invalid

# What 64 bits hold, as OCI's own numbers.
LARGEST = 2**63 - 1
_MOST_DIGITS = len(str(LARGEST))
_MOST_PARAMETERS = 200
# Whoever reads a log must not be able to act as whom it tells of.
_SECRET_PARAMETERS = frozenset({"password", "signature", "token", "x-amz-security-token", "x-amz-signature"})
_TOKEN_IN_PATH = re.compile(r"(?<=/tokens/)[^/?]{40,}")
_MASK = "****"


def read_json(body: bytes) -> Any:
    """Parses JSON. ValueError for JSON that other programs could not store or could read in another way, RecursionError
    for very deep nesting."""
    value = json.loads(
        body.decode(), parse_constant=_no_constant, parse_int=_whole, parse_float=_finite, object_pairs_hook=_once
    )
    if b"\\u" in body:  # JSON allows half of a surrogate pair; encoding it fails
        json.dumps(value, ensure_ascii=False).encode()
    return value


def whole_number(text: str) -> int | None:
    """The number that a text of digits stands for; None for any other text, and for numbers beyond 64 bits."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        return None
    number = int(text)
    return number if number <= LARGEST else None


def path_parameter(text: str) -> str:
    """Decodes one part of a path. Different parts never decode to the same text."""
    try:
        return unquote(text, errors="strict")
    except ValueError:
        raise invalid(f"{text[:80]!r} is not percent-encoded UTF-8") from None


def query_parameters(text: str) -> dict[str, str]:
    """The parameters of a query. One that stands twice is refused: programs differ in which of them counts."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_PARAMETERS)
    except UnicodeDecodeError:
        raise invalid("the query is not percent-encoded UTF-8") from None
    except ValueError:
        raise invalid(f"the query has more than {_MOST_PARAMETERS} parameters") from None
    parameters = dict(pairs)
    if len(parameters) < len(pairs):
        raise invalid("a parameter of the query stands twice")
    return parameters


def without_secrets(target: str) -> str:
    """A request's target for a log: a token or signature in it opens nothing."""
    path, mark, query = target.partition("?")
    parts = [_masked(part) for part in query.split("&")]
    return _TOKEN_IN_PATH.sub(_MASK, path) + mark + "&".join(parts)


def _masked(parameter: str) -> str:
    name, mark, _ = parameter.partition("=")
    return f"{name}{mark}{_MASK}" if mark and unquote_plus(name).lower() in _SECRET_PARAMETERS else parameter


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a JSON value, at any depth, without the keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key of an object stands twice")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _whole(text: str) -> int:
    if whole_number(text.removeprefix("-")) is None:
        raise ValueError("the number does not fit into 64 bits")
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("the number is not finite")
    return value
