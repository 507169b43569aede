# SPDX-License-Identifier: Apache-2.0
"""Python's code, read without running it: all modules that a team's code imports, also those that it may never reach.
schemas/imports.py finds those that it certainly imports."""

from __future__ import annotations

import ast
import os
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import RLock

from catalog.packages import modules_behind

# Python 3.11 counts the depth of a tree once for all threads. Where one begins while another is at it, the count is
# wrong: "SystemError: AST constructor recursion depth mismatch", which is neither's fault.
_ONE_AT_A_TIME = RLock()
# More files than any job's code has, and larger ones than people write. A folder with more of them holds data.
MOST_FILES = 2000
MOST_BYTES = 1_000_000
# Python reads the directory of an archive whole, so it has to be one that people have: some 200,000 files.
_MOST_DIRECTORY = 16_000_000
# How it ends, with a comment of at most 64 KiB; and what stands before that in an archive with more files still.
_END, _MORE, _LONGEST_END = b"PK\x05\x06", b"PK\x06\x07", (1 << 16) + 22


def parse(source: str | bytes) -> ast.Module:
    with _ONE_AT_A_TIME:
        return ast.parse(source)


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
        yield from _packed(code) if _has_small_directory(code) else ()
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


def _has_small_directory(archive: Path) -> bool:
    with archive.open("rb") as file:
        file.seek(-min(_LONGEST_END, archive.stat().st_size), os.SEEK_END)
        end = file.read()
    stated = [int.from_bytes(end[at + 12 : at + 16], "little") for at in _places(_END, end)]
    return _MORE not in end and all(size <= _MOST_DIRECTORY for size in stated)


def _places(mark: bytes, content: bytes) -> Iterator[int]:
    at = content.find(mark)
    while at >= 0:
        yield at
        at = content.find(mark, at + 1)


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
    except (OSError, ValueError, RuntimeError, NotImplementedError, EOFError, zipfile.BadZipFile, zlib.error):
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
