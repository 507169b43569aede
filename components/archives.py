# SPDX-License-Identifier: Apache-2.0
"""What an archive of a folder is made of. Pure: commands compare archives without importing Pulumi."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from schemas.code import code_files


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
