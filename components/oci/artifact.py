# SPDX-License-Identifier: Apache-2.0
"""A code folder as a job artifact. The same files give the same archive, byte for byte, with the same name."""

from __future__ import annotations

import hashlib
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

from schemas.code import code_files

# Part of the digest: an archive in another format must get another name.
FORMAT = b"zip, not compressed"
# The oldest time in a zip. With real times, every checkout would be another artifact.
EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class CodeArtifact:
    path: Path
    digest: str
    size: int

    @property
    def file_name(self) -> str:
        return self.path.name


def build_artifact(folder: Path, into: Path, name: str) -> CodeArtifact:
    """Writes the archive below `into`. Its name carries its digest: new code is a new path, which replaces the job."""
    digest = _digest(folder)
    into.mkdir(parents=True, exist_ok=True)
    target = into / _file_name(name, digest)
    if not target.exists():
        _write(target, _entries(folder))
    return CodeArtifact(target, digest, target.stat().st_size)


def artifact_name(folder: Path, name: str) -> str:
    """What the archive of this folder is called. A deployed job with an artifact of another name has other code."""
    return _file_name(name, _digest(folder))


def _file_name(name: str, digest: str) -> str:
    return f"{name}-{digest[:16]}.zip"


def _digest(folder: Path) -> str:
    digest = hashlib.sha256(FORMAT)
    for inside, path in _entries(folder):
        digest.update(f"{inside}\0{int(os.access(path, os.X_OK))}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _entries(folder: Path) -> list[tuple[str, Path]]:
    return [(path.relative_to(folder).as_posix(), path) for path in code_files(folder)]


def _write(target: Path, entries: list[tuple[str, Path]]) -> None:
    """Writes without compression: the zlibs of two machines give different bytes, and the length is part of the job."""
    unfinished = target.with_suffix(f".{os.getpid()}.tmp")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as archive:
        for inside, path in entries:
            info = zipfile.ZipInfo(inside, EPOCH)
            info.external_attr = (0o755 if os.access(path, os.X_OK) else 0o644) << 16
            archive.writestr(info, path.read_bytes())
    unfinished.replace(target)
