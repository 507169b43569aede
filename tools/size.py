# SPDX-License-Identifier: Apache-2.0
"""`python -m tools.size [REVISION]`: modules and lines of code by top-level folder, compared with another revision, and
how well names are found (tools/names.py).

`--by-home` counts the homes of each platform. `--draw 20 --seed N` lists modules and functions to read. It counts
modules other than `__init__`, and lines without blanks, comments and docstrings. It leaves out stacks, docs, tests and
bench.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from random import Random

from catalog.platforms import platform_folder, platforms
from tools.names import measure_names, module_functions

ROOT = Path(__file__).resolve().parents[1]
_LEFT_OUT = frozenset({"stacks", "docs", "tests", "bench"})
_PROGRAMS = ("components", "launcher", "localcloud")


def code_lines(source: bytes, tree: ast.Module) -> int:
    """The number of lines of code of one module."""
    written = source.splitlines()
    lines = {number for number, line in enumerate(written, 1) if line.strip() and not line.lstrip().startswith(b"#")}
    return len(lines - set(_docstring_lines(tree)))


def _docstring_lines(node: ast.AST) -> Iterator[int]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler):
            yield from _docstring_lines(child)
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            yield from range(first.lineno, (first.end_lineno or first.lineno) + 1)


def product_modules(revision: str) -> Iterator[tuple[str, bytes]]:
    """Every module of the product with its text: of a revision, or of the checkout if `revision` is empty."""
    for name, source in _modules_of_revision(revision) if revision else _modules_of_checkout():
        if name.endswith(".py") and name.split("/")[0] not in _LEFT_OUT:
            yield name, source


def _modules_of_revision(revision: str) -> Iterator[tuple[str, bytes]]:
    """The modules of a revision, with those that its export-ignore attributes would leave out of an archive."""
    names = _git_output("ls-tree", "-r", "-z", "--name-only", revision).decode().split("\0")
    wanted = [name for name in names if name.endswith(".py")]
    answers = BytesIO(
        _git_output("cat-file", "--batch", content="".join(f"{revision}:{name}\n" for name in wanted).encode())
    )
    for name in wanted:
        size = int(answers.readline().split()[-1])
        yield name, answers.read(size)
        answers.readline()


def _modules_of_checkout() -> Iterator[tuple[str, bytes]]:
    names = _git_output("ls-files", "-coz", "--exclude-standard").decode().split("\0")
    return ((name, (ROOT / name).read_bytes()) for name in names if (ROOT / name).is_file())


def parsed_modules(revision: str = "") -> dict[str, tuple[ast.Module, int]]:
    """The tree and the lines of code of every module."""
    found = {}
    for name, source in product_modules(revision):
        tree = ast.parse(source)
        found[name] = tree, code_lines(source, tree)
    return found


def sizes_by_room(
    parsed: Mapping[str, tuple[ast.Module, int]], room_of: Callable[[str], str]
) -> dict[str, Counter[str]]:
    """Files and lines by room. Modules whose room is "" are left out."""
    found: dict[str, Counter[str]] = {}
    for name, (_, lines) in parsed.items():
        if room := room_of(name):
            size = found.setdefault(room, Counter())
            size["files"] += not name.endswith("__init__.py")
            size["lines"] += lines
    return found


def top_folder(name: str) -> str:
    return name.split("/")[0] if "/" in name else "."


def platform_home(name: str) -> str:
    """The home of a platform that a file is in, such as `components/oci`."""
    folders = {folder: platform for platform in platforms() for folder in (platform_folder(platform), platform)}
    folders |= {folder.replace("-", "_"): platform for folder, platform in folders.items()}
    program, _, rest = name.partition("/")
    folder = rest.split("/")[0]
    return f"{program}/{folder}" if program in _PROGRAMS and folder in folders else ""


def draw_names(parsed: Mapping[str, tuple[ast.Module, int]], count: int, seed: int) -> Iterator[str]:
    """Modules, then functions, to read aloud."""
    chance = Random(seed)
    yield from chance.sample([name for name in sorted(parsed) if not name.endswith("__init__.py")], count)
    functions = [
        f"{function.name}  {name}" for name in sorted(parsed) for function in module_functions(parsed[name][0])
    ]
    yield from chance.sample(functions, count)


def _git_output(*words: str, content: bytes = b"") -> bytes:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, input=content).stdout


def _size_row(title: str, size: Counter[str]) -> str:
    return f"{title:22} {size['files']:5} {size['lines']:7}"


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.size", description="Modules, lines of code and names.")
    parser.add_argument("revisions", nargs="*", metavar="REVISION")
    parser.add_argument("--by-home", action="store_true", help="count the homes of each platform")
    parser.add_argument("--draw", type=int, metavar="N", help="list N modules and N functions")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(words)
    room_of = platform_home if given.by_home else top_folder
    wholes: dict[str, Counter[str]] = {}
    for revision in ("", *given.revisions):
        try:
            parsed = parsed_modules(revision)
        except subprocess.CalledProcessError as error:
            print(f"trainyard: {revision}: {error.stderr.decode(errors='replace').strip()}", file=sys.stderr)
            return 1
        if given.draw:
            print(*draw_names(parsed, given.draw, given.seed), sep="\n")
            return 0
        rooms = sizes_by_room(parsed, room_of)
        wholes[revision] = sum(rooms.values(), Counter())
        rows = [*sorted(rooms.items()), ("all", wholes[revision])]
        print(f"{revision or 'now'}: modules, lines of code", *(_size_row(*row) for row in rows), sep="\n")
        lines = sum(lines for _, lines in parsed.values())
        print(measure_names({name: tree for name, (tree, _) in parsed.items()}, lines))
    for revision in given.revisions:
        change = {key: f"{100 * (wholes[''][key] / wholes[revision][key] - 1):+.1f} %" for key in ("files", "lines")}
        print(f"against {revision}: modules {change['files']}, lines of code {change['lines']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
