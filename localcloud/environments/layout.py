# SPDX-License-Identifier: Apache-2.0
"""Where the parts of an environment are. Nodes see what is said here, and nothing that a file of a package says.

An interpreter of the machine is its user's own, so its links and settings are followed. What lies in a folder of the
cache follows from how trainyard made it. Packages of strangers lie there too: no file of the folder is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SETTINGS = "pyvenv.cfg"
_SITE = "site-packages"


@dataclass(frozen=True)
class Layout:
    """`prefixes` are the folders of its parts, its own first. `settings` is what `pyvenv.cfg` says in a virtual
    environment like it, or directly over it if it `is_base`. `sites` are the folders of its own modules, one for each
    version of Python."""

    prefixes: tuple[Path, ...]
    settings: str
    sites: tuple[Path, ...]
    is_base: bool


def of_interpreter(program: Path) -> Layout:
    """An interpreter of this machine. Its user made it, so its files say what it was made from."""
    prefix = program.parent.parent
    settings = _read(prefix / SETTINGS)
    sites = next(filter(None, map(_sites, dict.fromkeys((prefix, program.resolve().parent.parent)))), ())
    return Layout(tuple(_prefixes(program)), settings or _settings(program.resolve().parent, True), sites, not settings)


def of_unpacked(folder: Path) -> Layout:
    """A small Debian of the cache, which is a base of its own."""
    return Layout((folder,), _settings(folder.resolve() / "bin", True), _sites(folder), True)


def over(folder: Path, interpreter: Path, below: Layout, sees_system: bool = False) -> Layout:
    """A virtual environment of the cache, made by that interpreter."""
    sites = tuple(folder / "lib" / site.parent.name / _SITE for site in below.sites)
    settings = _settings(interpreter.resolve().parent, sees_system)
    return Layout((folder, *below.prefixes), settings, sites, False)


def _settings(home: Path, sees_system: bool) -> str:
    return f"home = {home}\ninclude-system-site-packages = {str(sees_system).lower()}\n"


def _sites(prefix: Path) -> tuple[Path, ...]:
    """More than one only where several Pythons share a prefix, as a system's own do."""
    return tuple(folder / _SITE for folder in sorted(prefix.glob("lib/python3.*/")))


def _prefixes(interpreter: Path) -> Iterator[Path]:
    """The folders of an interpreter, of what it was made from, and of all links on the way."""
    waiting, seen = [interpreter], set[Path]()
    while waiting:
        program = waiting.pop()
        prefix = program.parent.parent
        if program.is_symlink():
            waiting.append(program.parent / os.readlink(program))
        if prefix in seen:
            continue
        seen.add(prefix)
        yield prefix
        for name, _, value in (line.partition("=") for line in _read(prefix / SETTINGS).splitlines()):
            if name.strip() == "home" and os.path.isabs(value.strip()):
                waiting.append(Path(value.strip(), "python"))


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return ""
