# SPDX-License-Identifier: Apache-2.0
"""Pages of lists, with filters and order."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localcloud.oci.tenancy_store import StateStore, StoredResource
from localcloud.server.api_errors import invalid_parameter
from localcloud.server.http import parse_strict_json, whole_number

MAXIMUM_LIMIT = 1000
DEFAULT_LIMIT = 100
_ORDERS = {"TIMECREATED": "created", "DISPLAYNAME": "name", "NAME": "name"}
_COLUMNS = {
    "compartmentId": "compartment", "displayName": "name", "name": "name", "id": "id",
    "lifecycleState": "CASE WHEN settles_at > (julianday('now') - 2440587.5) * 86400 THEN settling ELSE state END",
}  # fmt: skip
_NOT_FILTERS = frozenset({"page", "limit", "sortBy", "sortOrder", "fields", "accessLevel"})


@dataclass(frozen=True)
class Page:
    items: Sequence[StoredResource]
    next: str

    @property
    def headers(self) -> dict[str, str]:
        return {"opc-next-page": self.next} if self.next else {}


def page_of(
    store: StateStore, kind: str, query: Mapping[str, str], columns: Mapping[str, str], live_only: bool
) -> Page:
    """A page of the resources of a kind. `columns`: further filters, with the column of each. Any other filter compares
    a field of the body."""
    filters = {**columns, **_COLUMNS}
    where: list[str] = ["kind = ?"]
    values: list[Any] = [kind]
    for name, value in query.items():
        if name in _NOT_FILTERS:
            continue
        if name in filters:
            where.append(f"{filters[name]} = ?")
            values.append(value)
        else:
            where.append("json_extract(body, ?) IS ?")
            if not name.isalnum():
                raise invalid_parameter(f"{name!r} is not a parameter of this operation")
            values += [f'$."{name}"', {"true": 1, "false": 0}.get(value, value)]
    if live_only:
        where.append("live")
    sort_by = query.get("sortBy", "TIMECREATED").upper()
    column = _ORDERS.get(sort_by.replace("_", ""), "created")
    order = query.get("sortOrder", "ASC" if column == "name" else "DESC").upper()
    if order not in ("ASC", "DESC"):
        raise invalid_parameter(f"sortOrder must be ASC or DESC, not {order!r}")
    if page := query.get("page"):
        where.append(f"({column}, id) {'>' if order == 'ASC' else '<'} (?, ?)")
        values += read_page(page, 2)
    limit = limit_of(query)
    rows = store.select(f"{' AND '.join(where)} ORDER BY {column} {order}, id {order} LIMIT {limit + 1}", values)
    last = rows[limit - 1] if len(rows) > limit else None
    return Page(rows[:limit], write_page([getattr(last, column), last.id]) if last else "")


def plain_page(
    items: Sequence[Any], query: Mapping[str, str], default: int = DEFAULT_LIMIT
) -> tuple[Sequence[Any], dict[str, str]]:
    """One page of a plain sequence, with its headers."""
    start = offset_of(query)
    end = start + limit_of(query, default)
    return items[start:end], {"opc-next-page": write_page([end])} if end < len(items) else {}


def offset_of(query: Mapping[str, str]) -> int:
    """The position at which a page of a plain sequence begins."""
    offset = read_page(query["page"], 1)[0] if query.get("page") else 0
    if not isinstance(offset, int) or offset < 0:
        raise invalid_parameter("page is not a page token of this cloud")
    return offset


def limit_of(query: Mapping[str, str], default: int = DEFAULT_LIMIT) -> int:
    text = query.get("limit", str(default))
    limit = whole_number(text)
    if limit is None or not 1 <= limit <= MAXIMUM_LIMIT:
        raise invalid_parameter(f"limit must be a number from 1 to {MAXIMUM_LIMIT}, not {text[:80]!r}")
    return limit


def write_page(position: list[Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode()


def read_page(page: str, length: int) -> list[Any]:
    try:
        position = parse_strict_json(base64.urlsafe_b64decode(page))
    except (ValueError, RecursionError):
        position = None
    if (
        not isinstance(position, list)
        or len(position) != length
        or not all(isinstance(item, str) or (isinstance(item, int | float) and abs(item) < 2**62) for item in position)
    ):
        raise invalid_parameter("page is not a page token of this cloud")
    return position
