# SPDX-License-Identifier: Apache-2.0
"""Finds the operation of a method and a path, in a tree of path segments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from localcloud.oci.operations import ApiOperation
from localcloud.server.http import path_parameter

# Some clients do not escape the slashes of this parameter.
_TAIL = "objectName"


@dataclass
class _Branch:
    fixed: dict[str, _Branch] = field(default_factory=dict)
    open: _Branch | None = None
    rows: dict[str, tuple[ApiOperation, tuple[str, ...]]] = field(default_factory=dict)


class Router:
    """All operations of the cloud."""

    def __init__(self, operations: Iterable[ApiOperation]) -> None:
        self.operations = tuple(operations)
        self._root = _Branch()
        for operation in self.operations:
            self._add(operation)

    def find(self, method: str, path: str) -> tuple[ApiOperation, dict[str, str]] | None:
        """The operation and the decoded parameters of its path. The path is still encoded."""
        branch, values = self._root, []
        segments = path.removeprefix("/").split("/")
        for index, segment in enumerate(segments):
            if not segment and index and index == len(segments) - 1:
                break  # some clients write `/n/` for `/n`
            following = branch.fixed.get(segment)
            if following is None:
                if branch.open is None:
                    return None
                following = branch.open
                values.append(segment)
                if any(row[1][-1:] == (_TAIL,) for row in following.rows.values()) and not following.fixed:
                    values[-1] = "/".join(segments[index:])
                    branch = following
                    break
            branch = following
        row = branch.rows.get(method)
        return (row[0], dict(zip(row[1], map(path_parameter, values), strict=True))) if row else None

    def _add(self, operation: ApiOperation) -> None:
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
