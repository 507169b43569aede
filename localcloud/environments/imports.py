# SPDX-License-Identifier: Apache-2.0
"""Finds the modules that a team's code imports, without running the code."""

from __future__ import annotations

import ast
import os
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

# More files than any job's code has, and larger ones than people write. A folder with more of them holds data.
MOST_FILES = 2000
MOST_BYTES = 1_000_000


def imported_modules(code: Path) -> frozenset[str]:
    """The top-level modules that a script imports, or the scripts of a folder or of its archive. An archive of a folder
    gives what the folder gives. What cannot be read counts as empty."""
    return frozenset(name for source in _sources(code) for name in _of_source(source))


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
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
