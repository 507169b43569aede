# SPDX-License-Identifier: Apache-2.0
"""Which files of this machine a node's programs see, besides the system: their interpreter and its modules.

A node sees the parts of an environment by name, and never a whole home folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from localcloud.hosts import inside

Shown = tuple[str, str]
_PROJECT = Path(__file__).resolve().parents[2]
_PARTS = ("bin", "lib", "lib64", "libexec", "include", "ssl", "pyvenv.cfg")
# Every node sees these folders.
_SYSTEM = tuple(Path("/", name) for name in ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"))
# Variables that name files or folders of this machine. A node gets them, so it must see what they name.
_NAMED = ("LD_LIBRARY_PATH", "SSL_CERT_FILE", "TRAINYARD_PIN_LIBRARY")


def project() -> str:
    return str(_PROJECT)


def launcher() -> Shown:
    return str(_PROJECT / "launcher"), f"{inside.PROJECT}/launcher"


def programs(interpreter: Path, variables: Mapping[str, str]) -> tuple[Shown, ...]:
    """The files and folders that an interpreter needs, each at its own path."""
    wanted = [prefix / part for prefix in _prefixes(interpreter) for part in _PARTS]
    wanted += [Path(path) for name in _NAMED for path in variables.get(name, "").split(os.pathsep) if path]
    return tuple((str(path), str(path)) for path in dict.fromkeys(_all_ways(wanted)))


def _prefixes(interpreter: Path) -> Iterator[Path]:
    """The folders of an environment, of what it was made from, and of all links on the way."""
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
        waiting += _made_from(prefix)


def _made_from(prefix: Path) -> Iterator[Path]:
    """The interpreters from which an environment was made, as its files name them."""
    try:
        lines = (prefix / "pyvenv.cfg").read_text().splitlines()
    except (OSError, ValueError):
        return
    for name, _, value in (line.partition("=") for line in lines):
        if name.strip() == "home":
            yield Path(value.strip(), "python")
    for more in prefix.glob("lib/python*/site-packages/base.pth"):
        for line in more.read_text().splitlines():
            yield Path(line).parents[2] / "bin" / "python"


def _all_ways(paths: Iterable[Path]) -> Iterator[Path]:
    """Each path as written and with its links resolved, unless every node sees it anyway."""
    for path in paths:
        for way in (Path(os.path.normpath(path)), path.resolve()):
            if way.exists() and not way.is_relative_to(_PROJECT / "launcher") and not _is_shared(way):
                yield way


def _is_shared(path: Path) -> bool:
    """Whether every node sees the path anyway, or showing it would show a home or this checkout."""
    too_much = (Path.home(), _PROJECT)
    return any(path.is_relative_to(each) for each in _SYSTEM) or any(each.is_relative_to(path) for each in too_much)
