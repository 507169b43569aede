# SPDX-License-Identifier: Apache-2.0
"""`python -m tools.size [REVISION]`: modules and lines of code by top-level folder, compared with another revision.

It counts modules other than `__init__`, and lines without blanks, comments and docstrings. It leaves out stacks, docs,
tests and bench.
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
    """The number of lines of code of one module."""
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
    """Every module of the product with its text: of a revision, or of the checkout if `revision` is empty."""
    for name, source in _packed(revision) if revision else _listed():
        if name.endswith(".py") and name.split("/")[0] not in _LEFT_OUT:
            yield name, source


def _packed(revision: str) -> Iterator[tuple[str, bytes]]:
    """The modules of a revision, with those that its export-ignore attributes would leave out of an archive."""
    names = _git("ls-tree", "-r", "-z", "--name-only", revision).decode().split("\0")
    wanted = [name for name in names if name.endswith(".py")]
    answers = BytesIO(_git("cat-file", "--batch", content="".join(f"{revision}:{name}\n" for name in wanted).encode()))
    for name in wanted:
        size = int(answers.readline().split()[-1])
        yield name, answers.read(size)
        answers.readline()


def _listed() -> Iterator[tuple[str, bytes]]:
    names = _git("ls-files", "-coz", "--exclude-standard").decode().split("\0")
    return ((name, (ROOT / name).read_bytes()) for name in names if (ROOT / name).is_file())


def sizes(revision: str) -> dict[str, Counter[str]]:
    """Files and lines by top-level folder."""
    found: dict[str, Counter[str]] = {}
    for name, source in modules(revision):
        room = found.setdefault(name.split("/")[0] if "/" in name else ".", Counter())
        room["files"] += not name.endswith("__init__.py")
        room["lines"] += code_lines(source)
    return found


def _git(*words: str, content: bytes = b"") -> bytes:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, input=content).stdout


def _row(title: str, size: Counter[str]) -> str:
    return f"{title:16} {size['files']:5} {size['lines']:7}"


def main(words: list[str]) -> int:
    wholes: dict[str, Counter[str]] = {}
    for revision in ("", *words):
        try:
            rooms = sizes(revision)
        except subprocess.CalledProcessError as error:
            print(f"trainyard: {revision}: {error.stderr.decode(errors='replace').strip()}", file=sys.stderr)
            return 1
        wholes[revision] = sum(rooms.values(), Counter())
        rows = [*sorted(rooms.items()), ("all", wholes[revision])]
        print(f"{revision or 'now'}: modules, lines of code", *(_row(*row) for row in rows), sep="\n")
    for revision in words:
        change = {key: f"{100 * (wholes[''][key] / wholes[revision][key] - 1):+.1f} %" for key in ("files", "lines")}
        print(f"against {revision}: modules {change['files']}, lines of code {change['lines']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
