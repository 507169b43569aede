# SPDX-License-Identifier: Apache-2.0
"""Finds the nearest right name to a wrong one, and formats names for people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

REFERENCES: Mapping[str, str] = {
    "registry": "address of the stack's repository",
    "bucket": "the stack's bucket, as a URL",
    "region": "the stack's region",
    "team": "trainyard:team",
    "environment": "trainyard:environment",
    "stack": "name of the stack",
    "job": "name of the job",
    "run": "name of the run",
}
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_.-]*)\}")


def nearest_name(wrong: str, right: Iterable[str]) -> str | None:
    from difflib import SequenceMatcher, get_close_matches  # a lazy import, because most files do not need it

    folded = {name.casefold(): name for name in right}
    close = sorted(get_close_matches(wrong.casefold(), folded, n=3, cutoff=0.6))
    # Of equally near names, the first: us-ashburn-1 rather than us-ashburn-2.
    best = max(close, key=lambda name: SequenceMatcher(None, wrong.casefold(), name).ratio(), default=None)
    return folded[best] if best is not None else None


def suggest_name(wrong: str, right: Iterable[str]) -> str:
    """A remedy: the nearest name if there is one, otherwise all names."""
    choices = list(right)
    close = nearest_name(wrong, choices)
    if close is not None:
        return f"did you mean `{close}`?"
    return f"use one of {quoted_list(choices)}" if choices else "remove it"


def quoted_list(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def and_list(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


def count_noun(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def reference_names_in(text: str) -> tuple[str, ...]:
    """The names of the references in a text, in order."""
    return tuple(_REFERENCE.findall(text))
