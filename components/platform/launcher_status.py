# SPDX-License-Identifier: Apache-2.0
"""What launchers and scripts write about themselves, made fit to be shorten: known keys, right types, bounded, finite.

A status object may come from an older launcher, or from a training script that may write to the bucket as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from components.plan.show import plain

# The launcher writes far less; a larger object is none of its own.
LONGEST_BYTES = 64 * 1024
_LONGEST_TEXT, _MOST_ITEMS, _DEEPEST = 500, 50, 5
_LARGEST = 2**53
CUT = "…"


def parse_status(content: bytes) -> dict[str, Any] | None:
    """A status object; None where it is none. Keys with values of a wrong type are left out."""
    document = parse_json(content)
    if not isinstance(document, Mapping):
        return None
    made = {key: fit(document[key]) for key, fit in _KEYS.items() if key in document}
    return {key: value for key, value in made.items() if value is not None}


def parse_json(content: bytes) -> Any:
    """JSON as Python reads it, `NaN` included; None for anything else."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def shorten(value: Any, depth: int = 0) -> Any:
    """Whatever a script wrote, as JSON of a size that people can read."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping | list) and depth == _DEEPEST:
        return CUT
    if isinstance(value, Mapping):
        items = list(value.items())
        kept = {_text(str(key)): shorten(item, depth + 1) for key, item in items[:_MOST_ITEMS]}
        return kept if len(items) <= _MOST_ITEMS else {**kept, CUT: len(items)}
    if isinstance(value, list):
        kept_items = [shorten(item, depth + 1) for item in value[:_MOST_ITEMS]]
        return kept_items if len(value) <= _MOST_ITEMS else [*kept_items, CUT]
    # Larger numbers lose digits in most readers of JSON.
    return _text(str(value)) if type(value) is int and abs(value) > _LARGEST else plain(value)


def _text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    return value if len(value) <= _LONGEST_TEXT else value[:_LONGEST_TEXT] + CUT


def _whole(value: Any) -> int | None:
    return value if type(value) is int and abs(value) <= _LARGEST else None


def _seconds(value: Any) -> float | None:
    return value if type(value) in (int, float) and 0 <= value <= _LARGEST else None


_KEYS: Mapping[str, Callable[[Any], Any]] = {
    "rank": _whole, "node": _text, "role": _text, "address": _text, "state": _text, "code": _whole, "reason": _text,
    "tries": _whole, "culprit": _whole, "waitedSeconds": _seconds, "firstStepSeconds": _seconds,
    "ranSeconds": _seconds, "progress": shorten, "bar": _text, "transport": _text, "lost": shorten,
    "at": _text,
}  # fmt: skip
