# SPDX-License-Identifier: Apache-2.0
"""What the scripts of a job's code say: the modules that they import, the calls that they make, and whether Python can
read them at all.

Scripts are parsed, never imported, because they are not trusted. Only files that the command starts count, and files of
the code that such a file imports. An import is certain if every start of the script reaches it: it is at the top level.
Imports in a `try`, a condition or a function may never run.
"""

from __future__ import annotations

import ast
import shlex
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from catalog.imports import parse_python

# Limits: more files than any script imports, and larger ones than people write.
MOST_FILES = 300
MOST_BYTES = 500_000
_LONGEST_TEXT = 80


# The value of an argument that only the running script knows.
UNKNOWN = object()


class Import(NamedTuple):
    """A module, and where it is imported. Of `from torch import nn`, `torch` and `torch.nn`."""

    module: str
    file: str
    line: int


class Call(NamedTuple):
    """A call by its whole name: `tf.keras.datasets.mnist.load_data()` is `tensorflow.keras.datasets.mnist.load_data`.

    The name of a method of an unknown object begins with a dot: `.cuda`. Arguments have the values of constants, or
    UNKNOWN. Of an f-string they have the text before its first value.
    """

    name: str
    positional: tuple[Any, ...]
    named: Mapping[str, Any]
    file: str
    line: int


class BrokenScript(NamedTuple):
    """A script that Python cannot read: why, and the line's text."""

    file: str
    line: int
    why: str
    text: str


@dataclass(frozen=True, slots=True)
class Scripts:
    """The scripts that the commands start. `certain`: the top-level modules that they certainly import, without the
    folder's own; `imports`: every module or name that they may import."""

    certain: tuple[Import, ...] = ()
    imports: tuple[Import, ...] = ()
    calls: tuple[Call, ...] = ()
    broken: tuple[BrokenScript, ...] = ()


@dataclass(frozen=True, slots=True)
class _Source:
    """A parsed file. Its calls and its problem do not know the file's name yet."""

    statements: tuple[_Statement, ...] = ()
    calls: tuple[Call, ...] = ()
    broken: BrokenScript | None = None


class _Statement(NamedTuple):
    """An import of a file. `level`: the number of dots. `names`: the names that are imported from a module."""

    module: str
    names: tuple[str, ...]
    level: int
    line: int
    is_certain: bool


def read_scripts(folder: Path, files: frozenset[str], commands: Sequence[str]) -> Scripts:
    """Reads the scripts that the commands start, and the files of the folder that these import."""
    waiting = sorted(_started_files(files, commands))
    # Every name by which a file or folder of the code could be imported, at any depth.
    own = set[str]()
    for file in files:
        *folders, name = file.split("/")
        own.update(folders)
        if name.endswith((".py", ".so", ".pyd")):
            own.add(name.partition(".")[0])
    seen, certain = set[str](), dict[str, Import]()
    imports, calls, broken = list[Import](), list[Call](), list[BrokenScript]()
    bases = {"", *(_folder_of(file) for file in waiting)}
    while waiting and len(seen) < MOST_FILES:
        file = waiting.pop(0)
        if file in seen:
            continue
        seen.add(file)
        script = folder / file
        try:
            status = script.stat()
            is_readable = status.st_size <= MOST_BYTES
            source = _parse_script(script, status.st_mtime_ns, status.st_size) if is_readable else _Source()
        except (OSError, ValueError):
            source = _Source()
        calls += (call._replace(file=file) for call in source.calls)
        broken += [source.broken._replace(file=file)] if source.broken else []
        for statement in source.statements:
            waiting += sorted(_files_of(statement, file, bases, files))
            top = statement.module.partition(".")[0]
            if statement.level or top in own:
                continue
            names = (statement.module, *(f"{statement.module}.{name}" for name in statement.names))
            imports += (Import(name, file, statement.line) for name in names)
            if statement.is_certain:
                certain.setdefault(top, Import(top, file, statement.line))
    return Scripts(tuple(certain.values()), tuple(imports), tuple(calls), tuple(broken))


def _started_files(files: Collection[str], commands: Iterable[str]) -> Iterator[str]:
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


@lru_cache(maxsize=2 * MOST_FILES)
def _parse_script(file: Path, _changed: int, _size: int) -> _Source:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = parse_python(file.read_bytes())
        certain = {id(node) for node in _certain_imports(tree.body)}
        statements = tuple(
            statement for node in ast.walk(tree) for statement in _import_statements(node, id(node) in certain)
        )
        return _Source(statements, tuple(_calls_in(tree)))
    except SyntaxError as error:
        text = (error.text or "").strip()[:_LONGEST_TEXT]
        return _Source(broken=BrokenScript("", error.lineno or 1, error.msg, text))
    except ValueError as error:
        return _Source(broken=BrokenScript("", 1, str(error)[:_LONGEST_TEXT], ""))
    except (OSError, RecursionError, MemoryError):
        return _Source()


def _calls_in(tree: ast.Module) -> Iterator[Call]:
    """The calls of a file. A name that it imports stands for what it is in its module, and a name that its top level
    gives a constant for that."""
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                known[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    constants: dict[str, Any] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(target := statement.targets[0], ast.Name):
            constants[target.id] = _constant_value(statement.value, {})
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := _called_name(node.func, known)):
            named = {
                argument.arg: _constant_value(argument.value, constants) for argument in node.keywords if argument.arg
            }
            yield Call(
                name, tuple(_constant_value(argument, constants) for argument in node.args), named, "", node.lineno
            )


def _called_name(function: ast.expr, known: Mapping[str, str]) -> str:
    """The whole name of what is called; empty if it has none."""
    parts: list[str] = []
    while isinstance(function, ast.Attribute):
        parts.insert(0, function.attr)
        function = function.value
    if isinstance(function, ast.Name) and function.id in known:
        return ".".join([known[function.id], *parts])
    return f".{parts[-1]}" if parts else ""


def _constant_value(argument: ast.expr, constants: Mapping[str, Any]) -> Any:
    if isinstance(argument, ast.Constant):
        return argument.value
    if isinstance(argument, ast.Name):
        return constants.get(argument.id, UNKNOWN)
    if isinstance(argument, ast.JoinedStr) and argument.values:
        return _constant_value(argument.values[0], {})
    if isinstance(argument, ast.List | ast.Tuple):
        return tuple(_constant_value(element, constants) for element in argument.elts)
    return UNKNOWN


def _import_statements(node: ast.AST, is_certain: bool) -> Iterator[_Statement]:
    if isinstance(node, ast.Import):
        yield from (_Statement(alias.name, (), 0, node.lineno, is_certain) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        names = tuple(alias.name for alias in node.names)
        yield _Statement(node.module or "", names, node.level, node.lineno, is_certain)


def _certain_imports(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If):
            test = node.test
            if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__":
                yield from _certain_imports(node.body)
        elif isinstance(node, ast.ClassDef) or (
            # contextlib.suppress(ImportError)
            isinstance(node, ast.With) and "suppress" not in ast.dump(node.items[0].context_expr)
        ):
            yield from _certain_imports(node.body)
