# SPDX-License-Identifier: Apache-2.0
"""Rows of several owners, within a bound for all of them. When it is reached, the owner with the most rows loses the
oldest one, so that nobody's rows take the place of another's."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

Row = TypeVar("Row")


class OwnedRows(Generic[Row]):
    """Rows by owner and key; the rows of an owner are in the order in which they were put."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._by_owner: dict[str, OrderedDict[Hashable, Row]] = {}
        self.forgotten = 0

    def pop(self, owner: str, key: Hashable) -> Row | None:
        """Removes the row with this key, and returns it; None if there is none."""
        rows = self._by_owner.get(owner)
        if rows is None or key not in rows:
            return None
        self._count -= 1
        return rows.pop(key)

    def put(self, owner: str, key: Hashable, row: Row) -> None:
        """Adds a row as the newest one. There must be none with its key."""
        self._by_owner.setdefault(owner, OrderedDict())[key] = row
        self._count += 1
        if self._count > self._most:
            largest = max(self._by_owner, key=lambda name: len(self._by_owner[name]))
            self._by_owner[largest].popitem(last=False)
            if not self._by_owner[largest]:
                del self._by_owner[largest]
            self._count -= 1
            self.forgotten += 1

    def __iter__(self) -> Iterator[Row]:
        return (row for rows in self._by_owner.values() for row in rows.values())
