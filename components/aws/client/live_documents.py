# SPDX-License-Identifier: Apache-2.0
"""Documents of IAM compared by what they say."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

# Lists of one may be written without brackets, and their order says nothing.
_SETS = frozenset({"Action", "NotAction", "Resource", "NotResource", "Statement", "AWS", "Service"})


def as_declared(declared: Any, live: Any) -> Any:
    """The live value; the declared one where it means the same: a document in another order, a list of one."""
    return declared if canonical(declared) == canonical(live) else live


def canonical(value: Any) -> Any:
    """A document of IAM, or any value, without what says nothing: order, spaces, names of statements."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            return canonical(json.loads(value))
        except ValueError:
            return value
    if isinstance(value, Mapping):
        return {key: _set(item) if key in _SETS else canonical(item) for key, item in value.items() if key != "Sid"}
    if isinstance(value, list | tuple):
        return sorted((canonical(one) for one in value), key=lambda one: json.dumps(one, sort_keys=True))
    return value


def _set(value: Any) -> Any:
    return canonical(value if isinstance(value, list | tuple) else [value])


def principals_in(document: str) -> Iterator[str]:
    """Whom a policy of a resource names."""
    try:
        rows = json.loads(document).get("Statement", [])
    except (ValueError, AttributeError):
        return
    for row in rows if isinstance(rows, list) else [rows]:
        named = row.get("Principal", {})
        values: Iterable[Any] = named.values() if isinstance(named, Mapping) else [named]
        for value in values:
            yield from map(str, value if isinstance(value, list) else [value])
