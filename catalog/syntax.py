# SPDX-License-Identifier: Apache-2.0
"""Python's code as a tree, for programs with threads."""

from __future__ import annotations

import ast
from threading import RLock

# Python 3.11 counts the depth of a tree once for all threads. Where one begins while another is at it, the count is
# wrong: "SystemError: AST constructor recursion depth mismatch", which is neither's fault.
_ONE_AT_A_TIME = RLock()


def parse(source: str | bytes) -> ast.Module:
    with _ONE_AT_A_TIME:
        return ast.parse(source)
