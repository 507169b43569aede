# SPDX-License-Identifier: Apache-2.0
"""A job's code: the files of its folder, the content of its archive, the host of its git address, and the modules that
its script certainly imports. Checks and packing both use this. It imports no Pulumi.

Code is parsed, never imported, because it is not trusted. An import is certain if every start of the script reaches it:
it is at the top level of a file that the command starts, or of a file that such a file imports. Imports in a `try`, a
condition or a function may never run.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shlex
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from catalog.imports import parse

LEFT_OUT = frozenset(
    {".git", "__pycache__", ".venv", ".trainyard", ".ipynb_checkpoints", ".DS_Store", ".pytest_cache", ".mypy_cache"}
)
PORTS = {"https": 443, "http": 80, "ssh": 22, "git": 9418}
_URL = re.compile(r"(?:(?P<scheme>[a-z+]+)://)?(?:[^/@]*@)?(?P<host>[^/:]+)(?::(?P<port>\d+)(?=/|$))?")


def code_files(folder: Path) -> Iterator[Path]:
    """The files of a code folder, sorted, without files that tools create.

    A link to a file of the folder becomes that file, because a clone elsewhere has both.
    """
    return (path for path in _walk(folder) if path.is_file() and (not path.is_symlink() or _inside(path, folder)))


def left_out_links(folder: Path) -> list[str]:
    """The links that are left out: links to folders, and to files outside the code folder."""
    left = (path for path in _walk(folder) if path.is_symlink() and not (path.is_file() and _inside(path, folder)))
    return [path.relative_to(folder).as_posix() for path in left]


def _walk(folder: Path) -> Iterator[Path]:
    for directory, names, plain in os.walk(folder):
        names[:] = sorted(name for name in names if name not in LEFT_OUT)
        linked = (name for name in names if Path(directory, name).is_symlink())
        for name in sorted((*plain, *linked)):
            if name not in LEFT_OUT and not name.endswith(".pyc"):
                yield Path(directory, name)


def _inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def host_of(url: str) -> str:
    """The host to which git connects. Empty if the text is not an address."""
    matched = _URL.match(url)
    return matched["host"] if matched else ""


def port_of(url: str) -> int:
    """The port to which git connects. `git@host:path` uses SSH."""
    matched = _URL.match(url)
    port = int(matched["port"]) if matched and matched["scheme"] and matched["port"] else 0
    usual = PORTS.get((matched["scheme"] or "ssh").removeprefix("git+"), PORTS["https"]) if matched else PORTS["https"]
    return port if 0 < port < 65536 else usual


@dataclass(frozen=True, slots=True)
class CodeArtifact:
    path: Path
    digest: str
    size: int

    @property
    def file_name(self) -> str:
        return self.path.name


def folder_digest(folder: Path, written_as: bytes) -> str:
    """A digest of all files. `written_as`: an archive in another format must get another name."""
    digest = hashlib.sha256(written_as)
    for inside, path in folder_entries(folder):
        digest.update(f"{inside}\0{int(os.access(path, os.X_OK))}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def folder_entries(folder: Path) -> list[tuple[str, Path]]:
    return [(path.relative_to(folder).as_posix(), path) for path in code_files(folder)]


# Limits: more files than any script imports, and larger ones than people write.
MOST_FILES = 300
MOST_BYTES = 500_000


class Import(NamedTuple):
    """A top-level module, and where it is imported."""

    module: str
    file: str
    line: int


class _Statement(NamedTuple):
    """An import of a file. `level`: the number of dots. `names`: the names that are imported from a module."""

    module: str
    names: tuple[str, ...]
    level: int
    line: int
    is_certain: bool


def certain_imports(folder: Path, files: frozenset[str], commands: Sequence[str]) -> tuple[Import, ...]:
    """The modules that the commands' scripts import, without the folder's own modules."""
    waiting = sorted(_started(files, commands))
    seen, imports, own = set[str](), dict[str, Import](), _own_modules(files)
    bases = {"", *(_folder_of(file) for file in waiting)}
    while waiting and len(seen) < MOST_FILES:
        file = waiting.pop(0)
        if file in seen:
            continue
        seen.add(file)
        for statement in _statements_of(folder / file):
            waiting += sorted(_files_of(statement, file, bases, files))
            top = statement.module.partition(".")[0]
            if statement.is_certain and not statement.level and top not in own:
                imports.setdefault(top, Import(top, file, statement.line))
    return tuple(imports.values())


def _started(files: Collection[str], commands: Iterable[str]) -> Iterator[str]:
    """The files that the commands start: `train.py`, or `-m package.train`."""
    for command in commands:
        try:
            words = shlex.split(command)
        except ValueError:
            continue
        for before, word in zip(["", *words], words, strict=False):
            path = str(PurePosixPath(word))
            as_module = word.replace(".", "/")
            candidates = [f"{as_module}.py", f"{as_module}/__main__.py"] if before == "-m" else [path]
            yield from (name for name in candidates if name.endswith(".py") and name in files)


def _own_modules(files: Iterable[str]) -> frozenset[str]:
    """Every name by which a file or folder of the code could be imported, at any depth."""
    names = set[str]()
    for file in files:
        *folders, name = file.split("/")
        names.update(folders)
        if name.endswith((".py", ".so", ".pyd")):
            names.add(name.partition(".")[0])
    return frozenset(names)


def _files_of(statement: _Statement, file: str, bases: Iterable[str], files: Collection[str]) -> Iterator[str]:
    """The files of the folder that an import reads."""
    parts = statement.module.split(".") if statement.module else []
    starts = [_folder_of(file)] if statement.level else list(bases)
    for _ in range(statement.level - 1):
        starts = [_folder_of(start) for start in starts]
    for start in starts:
        for named in (parts, *([*parts, name] for name in statement.names)):
            for length in range(1, len(named) + 1):
                path = "/".join([*([start] if start else []), *named[:length]])
                yield from (name for name in (f"{path}.py", f"{path}/__init__.py") if name in files)


def _folder_of(file: str) -> str:
    return file.rpartition("/")[0]


def _statements_of(file: Path) -> tuple[_Statement, ...]:
    try:
        status = file.stat()
        return _parsed(file, status.st_mtime_ns, status.st_size) if status.st_size <= MOST_BYTES else ()
    except (OSError, ValueError):
        return ()


@lru_cache(maxsize=2 * MOST_FILES)
def _parsed(file: Path, _changed: int, _size: int) -> tuple[_Statement, ...]:
    """A file's imports. Empty if it cannot be read or parsed: Python itself reports that more clearly."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = parse(file.read_bytes())
        certain = {id(node) for node in _certain(tree.body)}
        return tuple(one for node in ast.walk(tree) for one in _read(node, id(node) in certain))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


def _read(node: ast.AST, is_certain: bool) -> Iterator[_Statement]:
    if isinstance(node, ast.Import):
        yield from (_Statement(alias.name, (), 0, node.lineno, is_certain) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        names = tuple(alias.name for alias in node.names)
        yield _Statement(node.module or "", names, node.level, node.lineno, is_certain)


def _certain(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.ClassDef | ast.If | ast.With) and _is_always_run(node):
            yield from _certain(node.body)


def _is_always_run(node: ast.ClassDef | ast.If | ast.With) -> bool:
    if isinstance(node, ast.If):
        test = node.test
        return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"
    # contextlib.suppress(ImportError)
    return isinstance(node, ast.ClassDef) or "suppress" not in ast.dump(node.items[0].context_expr)
