# SPDX-License-Identifier: Apache-2.0
"""Finds the operation of a method and a path in a platform's table, by a tree of path segments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from localcloud.server.http import path_parameter


class OperationRow(Protocol):
    """The part of a row that the router needs. A path has parameters in braces, such as `/jobs/{job}`."""

    @property
    def method(self) -> str: ...

    @property
    def path(self) -> str: ...


R = TypeVar("R", bound=OperationRow)


@dataclass
class _Branch(Generic[R]):
    fixed: dict[str, _Branch[R]] = field(default_factory=dict)
    open: _Branch[R] | None = None
    rows: dict[str, tuple[R, tuple[str, ...]]] = field(default_factory=dict)


class Router(Generic[R]):
    """All operations of one API. `tail`: a last parameter of paths whose slashes some clients do not escape."""

    def __init__(self, operations: Iterable[R], tail: str = "") -> None:
        self.operations = tuple(operations)
        self._tail = tail
        self._root: _Branch[R] = _Branch()
        for operation in self.operations:
            self._add(operation)

    def find(self, method: str, path: str) -> tuple[R, dict[str, str]] | None:
        """The operation and the decoded parameters of its path. The path is still encoded."""
        branch, beside, values = self._root, None, []
        segments = path.removeprefix("/").split("/")
        for index, segment in enumerate(segments):
            if not segment and index and index == len(segments) - 1:
                break  # some clients write `/n/` for `/n`
            following = branch.fixed.get(segment)
            beside = branch.open if following is not None else None
            if following is None:
                if branch.open is None:
                    return None
                following = branch.open
                values.append(segment)
                if self._ends_in_tail(following):
                    values[-1] = "/".join(segments[index:])
                    branch = following
                    break
            branch = following
        row = branch.rows.get(method)
        if row is None and branch.rows and beside and (row := beside.rows.get(method)):
            # Such as `DELETE /tokens/check`, if `check` is a fixed segment for other methods only.
            values.append(segment or segments[-2])
        return (row[0], dict(zip(row[1], map(path_parameter, values), strict=True))) if row else None

    def _ends_in_tail(self, branch: _Branch[R]) -> bool:
        return not branch.fixed and any(names[-1:] == (self._tail,) for _, names in branch.rows.values())

    def _add(self, operation: R) -> None:
        branch, names = self._root, []
        for segment in operation.path.strip("/").split("/"):
            if segment.startswith("{"):
                names.append(segment[1:-1])
                branch.open = branch.open or _Branch()
                branch = branch.open
            else:
                branch = branch.fixed.setdefault(segment, _Branch())
        if operation.method in branch.rows:
            raise ValueError(f"two operations for {operation.method} {operation.path}")
        branch.rows[operation.method] = (operation, tuple(names))
