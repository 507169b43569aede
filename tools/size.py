# SPDX-License-Identifier: Apache-2.0
"""`python -m tools.size [REVISION]`: modules and lines of code by room, beside those of another revision.

Counted are files without `__init__`, and lines without blanks, comments and docstrings. What ships no behaviour is left
out: stacks, docs, tests, bench.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_LEFT_OUT = frozenset({"stacks", "docs", "tests", "bench"})
_NO_CODE = frozenset({
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
})  # fmt: skip


def code_lines(source: bytes) -> int:
    """Of one module."""
    docstrings = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and ast.get_docstring(node) is not None
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    tokens = tokenize.tokenize(BytesIO(source).readline)
    lines = {line for token in tokens if token.type not in _NO_CODE for line in range(token.start[0], token.end[0] + 1)}
    return len(lines - docstrings)


def modules(revision: str) -> Iterator[tuple[str, bytes]]:
    """Every product module with its text: of a revision, or of the checkout if that is empty."""
    listed = (
        _git("ls-tree", "-r", "--name-only", revision) if revision else _git("ls-files", "-co", "--exclude-standard")
    )
    for name in listed.decode().splitlines():
        if not name.endswith(".py") or name.split("/")[0] in _LEFT_OUT:
            continue
        if revision:
            yield name, _git("show", f"{revision}:{name}")
        elif (ROOT / name).is_file():
            yield name, (ROOT / name).read_bytes()


def sizes(revision: str) -> dict[str, Counter[str]]:
    """Files and lines by room."""
    found: dict[str, Counter[str]] = {}
    for name, source in modules(revision):
        room = found.setdefault(name.split("/")[0] if "/" in name else ".", Counter())
        room["files"] += not name.endswith("__init__.py")
        room["lines"] += code_lines(source)
    return found


def _git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True).stdout


def _row(title: str, size: Counter[str]) -> str:
    return f"{title:16} {size['files']:5} {size['lines']:7}"


def main(words: list[str]) -> None:
    sides = {"now": sizes(""), **{revision: sizes(revision) for revision in words}}
    for side, rooms in sides.items():
        whole = sum(rooms.values(), Counter())
        print(f"{side}: modules, lines of code")
        print("\n".join(_row(room, size) for room, size in sorted(rooms.items())))
        print(_row("all", whole))
        sides[side] = {"": whole}
    now = sides.pop("now")[""]
    for side, rooms in sides.items():
        change = {key: f"{100 * (now[key] / rooms[''][key] - 1):+.1f} %" for key in ("files", "lines")}
        print(f"against {side}: modules {change['files']}, lines of code {change['lines']}")


if __name__ == "__main__":
    main(sys.argv[1:])
