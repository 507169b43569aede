# SPDX-License-Identifier: Apache-2.0
"""A code folder as a job artifact. The same files give the same archive, byte for byte, with the same name."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from components.archives import CodeArtifact, folder_digest, folder_entries

# Part of the digest: an archive in another format must get another name.
FORMAT = b"zip, not compressed"
# The oldest time in a zip. With real times, every checkout would be another artifact.
EPOCH = (1980, 1, 1, 0, 0, 0)


def build_artifact(folder: Path, into: Path, name: str) -> CodeArtifact:
    """Writes the archive below `into`. Its name carries its digest: new code is a new path, which replaces the job."""
    digest = folder_digest(folder, FORMAT)
    into.mkdir(parents=True, exist_ok=True)
    target = into / _file_name(name, digest)
    if not target.exists():
        _write(target, folder_entries(folder))
    return CodeArtifact(target, digest, target.stat().st_size)


def artifact_name(folder: Path, name: str) -> str:
    """What the archive of this folder is called. A deployed job with an artifact of another name has other code."""
    return _file_name(name, folder_digest(folder, FORMAT))


def _file_name(name: str, digest: str) -> str:
    return f"{name}-{digest[:16]}.zip"


def _write(target: Path, entries: list[tuple[str, Path]]) -> None:
    """Writes without compression: the zlibs of two machines give different bytes, and the length is part of the job."""
    unfinished = target.with_suffix(f".{os.getpid()}.tmp")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as archive:
        for inside, path in entries:
            info = zipfile.ZipInfo(inside, EPOCH)
            info.external_attr = (0o755 if os.access(path, os.X_OK) else 0o644) << 16
            archive.writestr(info, path.read_bytes())
    unfinished.replace(target)
