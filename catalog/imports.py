# SPDX-License-Identifier: Apache-2.0
"""The modules that a team's Python code may import, read without running it, and the packages that provide modules
(catalog/modules.toml).

schemas/job_code.py finds the modules that code certainly imports.
"""

from __future__ import annotations

import ast
import os
import re
import warnings
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from threading import RLock

from catalog.tables import table


def normalized_name(name: str) -> str:
    """The name of a package in the form in which indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def packages_of(module: str) -> tuple[str, ...]:
    """The packages that provide a module, the usual one first."""
    return (*table("modules")["packages"].get(module, ()), normalized_name(module))


def provides_module(packages: Collection[str], module: str) -> bool:
    """Whether one of the packages provides a top-level module."""
    # `azure-storage-blob` and `ruamel.yaml` share a top-level module with others.
    own = normalized_name(module)
    return any(name in packages for name in packages_of(module)) or any(name.startswith(f"{own}-") for name in packages)


def requested_package_names(package: str) -> tuple[str, ...]:
    """Other names with which people request a package: `tensorflow-cpu` is TensorFlow."""
    return other_package_names().get(package, ())


def other_package_names() -> Mapping[str, tuple[str, ...]]:
    """The packages that have other names, with these."""
    return {name: tuple(others) for name, others in table("modules")["stands_for"].items()}


def modules_imported_besides(name: str) -> tuple[str, ...]:
    """The modules that a module, or a package with an extra, imports besides its own: `dask.dataframe` needs pandas."""
    rows: Mapping[str, list[str]] = table("modules")["needs"]
    parts = name.split(".")
    steps = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
    return tuple(module for step in steps for module in rows.get(step, ()))


# Python 3.11 counts the depth of a tree once for all threads. Where one begins while another is at it, the count is
# wrong: "SystemError: AST constructor recursion depth mismatch", which is neither's fault.
_ONE_AT_A_TIME = RLock()
# Limits: more files than any job's code has, and larger ones than people write. A larger folder holds data.
MOST_FILES = 2000
MOST_BYTES = 1_000_000
# Python reads the directory of an archive whole, so it has to be one that people have: some 200,000 files.
_MOST_DIRECTORY = 16_000_000
# How it ends, with a comment of at most 64 KiB; and what stands before that in an archive with more files still.
_END, _MORE, _LONGEST_END = b"PK\x05\x06", b"PK\x06\x07", (1 << 16) + 22


def parse_python(source: str | bytes) -> ast.Module:
    with _ONE_AT_A_TIME:
        return ast.parse(source)


def imported_modules(code: Path) -> frozenset[str]:
    """The top-level modules that a script imports, or the scripts of a folder or archive. A folder and its archive give
    the same result. Unreadable files count as empty.

    For a module that needs others besides its own package, these are included: `dask.dataframe` needs pandas.
    """
    return modules_of(_python_sources(code))


def modules_of(sources: Iterable[bytes]) -> frozenset[str]:
    """The top-level modules that these scripts import."""
    imported = set[str]()
    for source in sources:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = parse_python(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(top for name in imported for top in (name.partition(".")[0], *modules_imported_besides(name)))


def _python_sources(code: Path) -> Iterator[bytes]:
    if code.is_dir():
        files: list[Path] = []
        for folder, subfolders, names in os.walk(code):
            # Tools use hidden folders, for example for a whole environment in .venv.
            subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
            scripts = (Path(folder, name) for name in sorted(names) if name.endswith(".py"))
            files += [file for file in scripts if file.is_file() and file.stat().st_size <= MOST_BYTES]
        yield from (file.read_bytes() for file in files[:MOST_FILES])
    elif zipfile.is_zipfile(code):
        yield from _packed_sources(code)
    elif code.suffix == ".py" and code.is_file() and code.stat().st_size <= MOST_BYTES:
        yield code.read_bytes()


def _packed_sources(archive: Path) -> Iterator[bytes]:
    with archive.open("rb") as file:
        file.seek(-min(_LONGEST_END, archive.stat().st_size), os.SEEK_END)
        end = file.read()
    ends = [found.start() for found in re.finditer(re.escape(_END), end)]
    directory_sizes = [int.from_bytes(end[at + 12 : at + 16], "little") for at in ends]
    if _MORE in end or any(size > _MOST_DIRECTORY for size in directory_sizes):
        return
    try:
        with zipfile.ZipFile(archive) as opened:
            scripts = [item for item in opened.infolist() if item.filename.endswith(".py")]
            for item in scripts[:MOST_FILES]:
                # The size in the archive cannot be trusted, so unpacking stops at the limit.
                with opened.open(item) as script:
                    source = script.read(MOST_BYTES + 1)
                if len(source) <= MOST_BYTES:
                    yield source
    except (OSError, ValueError, RuntimeError, NotImplementedError, EOFError, zipfile.BadZipFile, zlib.error):
        return
