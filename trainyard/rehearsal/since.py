# SPDX-License-Identifier: Apache-2.0
"""What the firewalls of hosts counted since an earlier look: hosts that carry several runs go on counting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Document = Mapping[str, Any]
_RULE, _FLOW = ("list", "direction", "index", "node"), ("direction", "from", "to", "port", "protocol")


def since(document: Document, before: Document | None) -> Document:
    """The document without what an earlier one of the same host has already."""
    if before is None:
        return document
    return {
        **document,
        "nodes": [_node(row, before["nodes"]) for row in document["nodes"]],
        "rules": _rows(document["rules"], before["rules"], _RULE, ("connections", "packets")),
        "flows": _happened(_rows(document["flows"], before["flows"], _FLOW, ("connections",)), "connections"),
        "dropped": _happened(_rows(document["dropped"], before["dropped"], _FLOW, ("packets",)), "packets"),
    }


def _rows(
    rows: Iterable[Document], before: Iterable[Document], key: Sequence[str], counted: Sequence[str]
) -> list[Document]:
    earlier = {tuple(row[name] for name in key): row for row in before}
    made: list[Document] = []
    for row in rows:
        old = earlier.get(tuple(row[name] for name in key), {})
        made.append({**row, **{name: _more(row[name], old.get(name, 0)) for name in counted}})
    return made


def _happened(rows: Iterable[Document], counted: str) -> list[Document]:
    return [row for row in rows if row[counted]]


def _node(row: Document, before: Iterable[Document]) -> Document:
    old: Document = next((one for one in before if one["rank"] == row["rank"]), {})
    carried, seconds, until = old.get("carried") or {}, row.get("processorSeconds"), old.get("processorSeconds")
    return {
        **row,
        "carried": {peer: _more(count, carried.get(peer, 0)) for peer, count in (row.get("carried") or {}).items()},
        "processorSeconds": seconds - until if seconds is not None and until is not None else seconds,
    }


def _more(now: int, before: int) -> int:
    """A host that came up again begins anew."""
    return now - before if now >= before else now
