# SPDX-License-Identifier: Apache-2.0
"""Values of a stack file that somebody still has to fill in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

# A text that somebody has to replace. `check` warns of it by the code UNFILLED, and `up` refuses it.
PLACEHOLDER = "replace-me"
UNFILLED = "TY6000"
# Set where a stack is only tried, so that it may have placeholders.
PLACEHOLDERS_ALLOWED = "TRAINYARD_PLACEHOLDERS_ALLOWED"


def placeholder_paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where values of a stack are still to be filled in."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from placeholder_paths(below, (*path, key))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from placeholder_paths(below, (*path, index))
    elif isinstance(value, str) and PLACEHOLDER in value:
        yield path
