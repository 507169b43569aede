# SPDX-License-Identifier: Apache-2.0
"""The folders of an environment, which nodes see. No file of a package can add to them.

An interpreter of the machine belongs to its user, so its links and settings are followed. The layout of a folder in the
cache follows from how trainyard made it. No file there is read, because there may be packages that are not trusted.
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
    """The layout of an environment. `prefixes`: the folders of its parts, its own first. `settings`: the `pyvenv.cfg`
    of a virtual environment like it, or directly over it if it `is_base`. `sites`: the folders of its own modules, one
    for each version of Python."""

    prefixes: tuple[Path, ...]
    settings: str
    sites: tuple[Path, ...]
    is_base: bool


def interpreter_layout(program: Path) -> Layout:
    """The layout of an interpreter of this machine. It belongs to the user, so its files are trusted."""
    prefix = program.parent.parent
    settings = _read_text_if_any(prefix / SETTINGS)
    sites = next(filter(None, map(_module_folders, dict.fromkeys((prefix, program.resolve().parent.parent)))), ())
    return Layout(
        tuple(_interpreter_prefixes(program)),
        settings or _venv_settings(program.resolve().parent, True),
        sites,
        not settings,
    )


def unpacked_debian_layout(folder: Path) -> Layout:
    """The layout of a small Debian in the cache, which has no base."""
    return Layout((folder,), _venv_settings(folder.resolve() / "bin", True), _module_folders(folder), True)


def layout_over(folder: Path, interpreter: Path, below: Layout, sees_system: bool = False) -> Layout:
    """The layout of a virtual environment in the cache, made with this interpreter."""
    sites = tuple(folder / "lib" / site.parent.name / _SITE for site in below.sites)
    settings = _venv_settings(interpreter.resolve().parent, sees_system)
    return Layout((folder, *below.prefixes), settings, sites, False)


def _venv_settings(home: Path, sees_system: bool) -> str:
    return f"home = {home}\ninclude-system-site-packages = {str(sees_system).lower()}\n"


def _module_folders(prefix: Path) -> tuple[Path, ...]:
    """The folders of modules: several if several Pythons share a prefix, as those of a system do."""
    return tuple(folder / _SITE for folder in sorted(prefix.glob("lib/python3.*/")))


def _interpreter_prefixes(interpreter: Path) -> Iterator[Path]:
    """The folders of an interpreter, of its base, and of all links in between."""
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
        for name, _, value in (line.partition("=") for line in _read_text_if_any(prefix / SETTINGS).splitlines()):
            if name.strip() == "home" and os.path.isabs(value.strip()):
                waiting.append(Path(value.strip(), "python"))


def _read_text_if_any(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return ""
