# SPDX-License-Identifier: Apache-2.0
"""Finds the modules that a team's code imports, without running the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

# More files than any job's code has. A folder with more of them holds data.
MOST_FILES = 2000


def imported_modules(code: Path) -> frozenset[str]:
    """The top-level modules that a script or the scripts of a folder import. Unreadable files count as empty."""
    files = [code] if code.is_file() else sorted(code.rglob("*.py"))[:MOST_FILES]
    return frozenset(name for file in files if file.suffix == ".py" for name in _of_file(file))


def _of_file(file: Path) -> Iterator[str]:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
