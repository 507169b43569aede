# SPDX-License-Identifier: Apache-2.0
"""What of this machine a node's programs need to see beside the system: their interpreter, wherever it lies, and the
modules it finds. Never a whole home folder: the parts of an environment, by name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from localcloud.hosts import inside

Shown = tuple[str, str]
_PROJECT = Path(__file__).resolve().parents[2]
_PARTS = ("bin", "lib", "lib64", "libexec", "include", "ssl", "pyvenv.cfg")
# A node sees these in any case.
_SYSTEM = tuple(Path("/", name) for name in ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"))
# Variables that name files or folders of this machine: a node is told of them, and so has to see them.
_NAMED = ("LD_LIBRARY_PATH", "SSL_CERT_FILE", "TRAINYARD_PIN_LIBRARY")


def project() -> str:
    return str(_PROJECT)


def launcher() -> Shown:
    return str(_PROJECT / "launcher"), f"{inside.PROJECT}/launcher"


def programs(interpreter: Path, variables: Mapping[str, str]) -> tuple[Shown, ...]:
    """What an interpreter needs, each thing at its own path."""
    wanted = [prefix / part for prefix in _prefixes(interpreter) for part in _PARTS]
    wanted += [Path(path) for name in _NAMED for path in variables.get(name, "").split(os.pathsep) if path]
    return tuple((str(path), str(path)) for path in dict.fromkeys(_all_ways(wanted)))


def _prefixes(interpreter: Path) -> Iterator[Path]:
    """An environment, what it was made from, and every place that links to one of them lead through."""
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
    """The interpreters of what an environment stands on, as files in it say."""
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
    """Paths as they are written, and as they are without links, where they are no part of the system."""
    for path in paths:
        for way in (Path(os.path.normpath(path)), path.resolve()):
            if way.exists() and not way.is_relative_to(_PROJECT / "launcher") and not _is_shared(way):
                yield way


def _is_shared(path: Path) -> bool:
    """Whether it is shown anyhow, or would show too much: a folder with a home or this checkout in it."""
    too_much = (Path.home(), _PROJECT)
    return any(path.is_relative_to(each) for each in _SYSTEM) or any(each.is_relative_to(path) for each in too_much)
