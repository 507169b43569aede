# SPDX-License-Identifier: Apache-2.0
"""A job's code: the files of its folder, the content of its archive, and the host of its git address. Checks and
packing both use this. It imports no Pulumi. schemas/scripts.py reads the scripts themselves."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LEFT_OUT = frozenset(
    {".git", "__pycache__", ".venv", ".trainyard", ".ipynb_checkpoints", ".DS_Store", ".pytest_cache", ".mypy_cache"}
)
PORTS = {"https": 443, "http": 80, "ssh": 22, "git": 9418}
_URL = re.compile(r"(?:(?P<scheme>[a-z+]+)://)?(?:[^/@]*@)?(?P<host>[^/:]+)(?::(?P<port>\d+)(?=/|$))?")


def code_files(folder: Path) -> Iterator[Path]:
    """The files of a code folder, sorted, without files that tools create.

    A link to a file of the folder becomes that file, because a clone elsewhere has both.
    """
    return (
        path
        for path in _walk_code(folder)
        if path.is_file() and (not path.is_symlink() or _is_inside_folder(path, folder))
    )


def left_out_links(folder: Path) -> list[str]:
    """The links that are left out: links to folders, and to files outside the code folder."""
    left = (
        path
        for path in _walk_code(folder)
        if path.is_symlink() and not (path.is_file() and _is_inside_folder(path, folder))
    )
    return [path.relative_to(folder).as_posix() for path in left]


def _walk_code(folder: Path) -> Iterator[Path]:
    for directory, names, plain in os.walk(folder):
        names[:] = sorted(name for name in names if name not in LEFT_OUT)
        linked = (name for name in names if Path(directory, name).is_symlink())
        for name in sorted((*plain, *linked)):
            if name not in LEFT_OUT and not name.endswith(".pyc"):
                yield Path(directory, name)


def _is_inside_folder(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def git_host(url: str) -> str:
    """The host to which git connects. Empty if the text is not an address."""
    matched = _URL.match(url)
    return matched["host"] if matched else ""


def git_port(url: str) -> int:
    """The port to which git connects. `git@host:path` uses SSH."""
    matched = _URL.match(url)
    port = int(matched["port"]) if matched and matched["scheme"] and matched["port"] else 0
    usual = PORTS.get((matched["scheme"] or "ssh").removeprefix("git+"), PORTS["https"]) if matched else PORTS["https"]
    return port if 0 < port < 65536 else usual


@dataclass(frozen=True, slots=True)
class CodeArtifact:
    path: Path
    digest: str
    size: int

    @property
    def file_name(self) -> str:
        return self.path.name


def folder_digest(folder: Path, written_as: bytes) -> str:
    """A digest of all files. `written_as`: an archive in another format must get another name."""
    digest = hashlib.sha256(written_as)
    for inside, path in folder_entries(folder):
        digest.update(f"{inside}\0{int(os.access(path, os.X_OK))}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def folder_entries(folder: Path) -> list[tuple[str, Path]]:
    return [(path.relative_to(folder).as_posix(), path) for path in code_files(folder)]
