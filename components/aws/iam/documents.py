# SPDX-License-Identifier: Apache-2.0
"""Parses policy documents, and compares them by meaning. An unreadable document allows nothing and denies
everything."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any


class UnreadableDocumentError(Exception):
    """The document is not a valid policy. The text has the reason."""


@dataclass(frozen=True)
class PolicyStatement:
    """One statement. `text`: its JSON, for records. A `not_…` field is the complement, as in `NotAction`."""

    allows: bool
    actions: tuple[str, ...]
    not_actions: tuple[str, ...]
    resources: tuple[str, ...]
    not_resources: tuple[str, ...]
    conditions: tuple[tuple[str, str, tuple[str, ...]], ...]
    principals: Mapping[str, tuple[str, ...]]
    not_principals: Mapping[str, tuple[str, ...]]
    text: str


@dataclass(frozen=True)
class PolicyDocument:
    """A policy document with the policy's name."""

    name: str
    statements: tuple[PolicyStatement, ...]


@lru_cache(maxsize=512)
def statements_of(document: str) -> tuple[PolicyStatement, ...]:
    """The statements of a document."""
    try:
        body = json.loads(document)
        found = body["Statement"]
        return tuple(_parse_statement(one) for one in (found if isinstance(found, list) else [found]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableDocumentError(str(error)) from None


def _parse_statement(body: Mapping[str, Any]) -> PolicyStatement:
    if body["Effect"] not in ("Allow", "Deny"):
        raise ValueError("Effect must be Allow or Deny")
    if unknown := set(body) - STATEMENT_KEYS:
        raise ValueError(f"unknown keys: {sorted(unknown)}")
    conditions = tuple(
        (operator, key, document_texts(values))
        for operator, keys in body.get("Condition", {}).items()
        for key, values in keys.items()
    )
    return PolicyStatement(
        body["Effect"] == "Allow",
        document_texts(body.get("Action", [])), document_texts(body.get("NotAction", [])),
        document_texts(body.get("Resource", [])), document_texts(body.get("NotResource", [])),
        conditions, _parse_principals(body.get("Principal", {})), _parse_principals(body.get("NotPrincipal", {})),
        json.dumps(body, sort_keys=True),
    )  # fmt: skip


STATEMENT_KEYS = frozenset({
    "Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition", "Principal",
    "NotPrincipal",
})  # fmt: skip


def _parse_principals(value: Any) -> Mapping[str, tuple[str, ...]]:
    if value == "*":
        return {"AWS": ("*",)}
    return {kind: document_texts(names) for kind, names in value.items()}


def document_texts(value: Any) -> tuple[str, ...]:
    """The texts of a part of a document, which may have one without a list."""
    values = value if isinstance(value, list) else [value]
    return tuple(("true" if one else "false") if isinstance(one, bool) else str(one) for one in values)


# A list of one may be written without brackets. The order has no meaning.
_SETS = frozenset({"Action", "NotAction", "Resource", "NotResource", "Statement", "AWS", "Service"})


def declared_or_live(declared: Any, live: Any) -> Any:
    """The live value, or the declared one if both mean the same, such as a document in another order."""
    return declared if canonical_document(declared) == canonical_document(live) else live


def canonical_document(value: Any) -> Any:
    """A document or any other value, without order, spaces and `Sid`s, which have no meaning."""
    if isinstance(value, str):
        parsed = parsed_document(value) if value.lstrip().startswith("{") else value
        return canonical_document(parsed) if parsed != value else value
    if isinstance(value, Mapping):
        rows = ((key, item) for key, item in value.items() if key != "Sid")
        return {
            key: canonical_document([item] if key in _SETS and not isinstance(item, list | tuple) else item)
            for key, item in rows
        }
    if isinstance(value, list | tuple):
        return sorted((canonical_document(one) for one in value), key=lambda one: json.dumps(one, sort_keys=True))
    return value


def parsed_document(document: Any) -> Any:
    """The value of a text in JSON. Any other value stays as it is."""
    try:
        return json.loads(document) if isinstance(document, str) else document
    except (ValueError, RecursionError):
        return document


def statement_bodies(document: Any) -> list[Any]:
    """The statements of a document, or of its text, as they are. Empty if it is unreadable."""
    body = parsed_document(document)
    found = body.get("Statement") if isinstance(body, Mapping) else None
    return found if isinstance(found, list) else [] if found is None else [found]


def principals_in(document: str) -> Iterator[str]:
    """The principals that a resource's policy names."""
    for row in statement_bodies(document):
        named = row.get("Principal", {})
        values: Iterable[Any] = named.values() if isinstance(named, Mapping) else [named]
        for value in values:
            yield from map(str, value if isinstance(value, list) else [value])
