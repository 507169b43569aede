# SPDX-License-Identifier: Apache-2.0
"""A code folder as a job artifact: the same files give the same archive, byte for byte, under a name that says so."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# The oldest moment a zip can tell; real times would make every checkout another artifact.
EPOCH = (1980, 1, 1, 0, 0, 0)
LEFT_OUT = frozenset(
    {".git", "__pycache__", ".venv", ".trainyard", ".ipynb_checkpoints", ".DS_Store", ".pytest_cache", ".mypy_cache"}
)


@dataclass(frozen=True, slots=True)
class Artifact:
    path: Path
    digest: str
    size: int

    @property
    def file_name(self) -> str:
        return self.path.name


def files(folder: Path) -> Iterator[Path]:
    """The files of a code folder, sorted, without what tools leave behind.

    A link to a file of the folder travels as that file: a clone elsewhere has both.
    """
    return (path for path in _walk(folder) if path.is_file() and (not path.is_symlink() or _inside(path, folder)))


def links_left(folder: Path) -> list[str]:
    """The links that do not travel: to folders, and to what only this machine has."""
    left = (path for path in _walk(folder) if path.is_symlink() and not (path.is_file() and _inside(path, folder)))
    return [path.relative_to(folder).as_posix() for path in left]


def _walk(folder: Path) -> Iterator[Path]:
    for directory, names, found in os.walk(folder):
        names[:] = sorted(name for name in names if name not in LEFT_OUT)
        linked = (name for name in names if Path(directory, name).is_symlink())
        for name in sorted((*found, *linked)):
            if name not in LEFT_OUT and not name.endswith(".pyc"):
                yield Path(directory, name)


def _inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def build(folder: Path, into: Path, name: str) -> Artifact:
    """Writes the archive below `into`. Its name carries its digest: new code is a new path, which replaces the job."""
    digest = hashlib.sha256()
    entries = [(path.relative_to(folder).as_posix(), path) for path in files(folder)]
    for inside, path in entries:
        digest.update(f"{inside}\0{int(os.access(path, os.X_OK))}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    into.mkdir(parents=True, exist_ok=True)
    target = into / f"{name}-{digest.hexdigest()[:16]}.zip"
    if not target.exists():
        _write(target, entries)
    return Artifact(target, digest.hexdigest(), target.stat().st_size)


def _write(target: Path, entries: list[tuple[str, Path]]) -> None:
    """Not compressed: two machines' zlibs differ by bytes, and the archive's length is part of the job."""
    unfinished = target.with_suffix(f".{os.getpid()}.tmp")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as archive:
        for inside, path in entries:
            info = zipfile.ZipInfo(inside, EPOCH)
            info.external_attr = (0o755 if os.access(path, os.X_OK) else 0o644) << 16
            archive.writestr(info, path.read_bytes())
    unfinished.replace(target)
