# SPDX-License-Identifier: Apache-2.0
"""Which files of this machine a node's programs see, besides the system: their interpreter and its modules.

A node sees the parts of an environment by name, and never a whole home folder. Where the parts are, follows from how
trainyard made the environment (`localcloud.environments.layout`), and not from a file that a package brought.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from localcloud.environments import cache, layout
from localcloud.environments.find import interpreters
from localcloud.environments.layout import Layout
from localcloud.hosts import inside
from localcloud.hosts.assignment import CannotStartError

# Where a file is, and where the node sees it. The first has no link on the way to its last part: nodes get what lies
# there, and nothing that a link leads to.
Shown = tuple[str, str]
_PROJECT = Path(__file__).resolve().parents[2]
_PARTS = ("bin", "lib", "lib64", "libexec", "include", "ssl", layout.SETTINGS)
# Every node sees these folders.
_SYSTEM = tuple(Path("/", name) for name in ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"))
# Variables that name files or folders of this machine. A node gets them, so it must see what they name.
_NAMED = ("LD_LIBRARY_PATH", "SSL_CERT_FILE", "TRAINYARD_PIN_LIBRARY")


def project() -> str:
    return str(_PROJECT)


def launcher() -> Shown:
    return str(_PROJECT / "launcher"), f"{inside.PROJECT}/launcher"


def programs(parts: Layout, variables: Mapping[str, str]) -> tuple[Shown, ...]:
    """The files and folders that an environment needs, each at its own path."""
    own = {prefix for program in interpreters() for prefix in layout.of_interpreter(program).prefixes}
    named = [path for name in _NAMED for path in variables.get(name, "").split(os.pathsep) if os.path.isabs(path)]
    ways = [way for prefix in parts.prefixes for way in _parts(prefix, own)]
    ways += [way for path in named for way in _trusted(Path(path))]
    return tuple(dict.fromkeys(_worth_showing(ways)))


def _parts(prefix: Path, own: Iterable[Path]) -> Iterator[tuple[Path, Path]]:
    if prefix.is_relative_to(cache.cache_folder()):
        for part in _PARTS:
            yield from _cached(prefix / part)
    elif prefix in own or _is_system(prefix):
        for part in _PARTS:
            yield from _trusted(prefix / part)
    else:
        raise CannotStartError(f"{prefix} is neither an environment nor an interpreter of this machine: not shown")


def _cached(path: Path) -> Iterator[tuple[Path, Path]]:
    """In the cache only the way to it may have links: packages are unpacked there."""
    real = cache.cache_folder().resolve() / path.relative_to(cache.cache_folder())
    yield real, path
    yield real, real


def _trusted(path: Path) -> Iterator[tuple[Path, Path]]:
    """As written, and with its links resolved."""
    yield path.parent.resolve() / path.name, Path(os.path.normpath(path))
    yield path.resolve(), path.resolve()


def _worth_showing(ways: Iterable[tuple[Path, Path]]) -> Iterator[Shown]:
    """What is there, unless every node sees it anyway, or it would show a home or this checkout."""
    for source, target in ways:
        if os.path.lexists(source) and not any(map(_is_left_out, (source, target))):
            yield str(source), str(target)


def _is_left_out(path: Path) -> bool:
    too_much = any(each.is_relative_to(path) for each in (Path.home(), _PROJECT))
    return too_much or _is_system(path) or path.is_relative_to(_PROJECT / "launcher")


def _is_system(path: Path) -> bool:
    return any(path.is_relative_to(each) for each in _SYSTEM)
