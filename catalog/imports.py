# SPDX-License-Identifier: Apache-2.0
"""Finds the modules that a team's code imports, without running the code: all of them, also those that it may never
reach. schemas/imports.py finds those that it certainly imports."""

from __future__ import annotations

import ast
import os
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from catalog.packages import modules_behind
from catalog.syntax import parse

# More files than any job's code has, and larger ones than people write. A folder with more of them holds data.
MOST_FILES = 2000
MOST_BYTES = 1_000_000


def imported_modules(code: Path) -> frozenset[str]:
    """The top-level modules that a script imports, or the scripts of a folder or of its archive. An archive of a folder
    gives what the folder gives. What cannot be read counts as empty.

    A module that needs others besides its own package names these too: `dask.dataframe` needs pandas.
    """
    return modules_of(_sources(code))


def modules_of(sources: Iterable[bytes]) -> frozenset[str]:
    """The top-level modules that these scripts import."""
    named = {name for source in sources for name in _of_source(source)}
    return frozenset(top for name in named for top in (name.partition(".")[0], *modules_behind(name)))


def _sources(code: Path) -> Iterator[bytes]:
    if code.is_dir():
        yield from (file.read_bytes() for file in _files(code))
    elif zipfile.is_zipfile(code):
        yield from _packed(code)
    elif code.suffix == ".py" and code.is_file() and code.stat().st_size <= MOST_BYTES:
        yield code.read_bytes()


def _files(folder: Path) -> list[Path]:
    files: list[Path] = []
    for place, names, plain in os.walk(folder):
        # Tools keep their own things in hidden folders, such as a whole environment in .venv.
        names[:] = sorted(name for name in names if not name.startswith("."))
        scripts = (Path(place, name) for name in sorted(plain) if name.endswith(".py"))
        files += [file for file in scripts if file.is_file() and file.stat().st_size <= MOST_BYTES]
    return files[:MOST_FILES]


def _packed(archive: Path) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(archive) as opened:
            scripts = [item for item in opened.infolist() if item.filename.endswith(".py")]
            for item in scripts[:MOST_FILES]:
                # The size that an archive states is a claim: no more than the limit is unpacked.
                with opened.open(item) as script:
                    source = script.read(MOST_BYTES + 1)
                if len(source) <= MOST_BYTES:
                    yield source
    except (OSError, ValueError, RuntimeError, NotImplementedError, zipfile.BadZipFile):
        return


def _of_source(source: bytes) -> Iterator[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
