# SPDX-License-Identifier: Apache-2.0
"""Folders as archives that nodes fetch: tar within gzip, the same bytes on every machine."""

from __future__ import annotations

import io
import os
import struct
import tarfile
import zlib
from pathlib import Path

from components.archives import CodeArtifact, folder_digest, folder_entries

# Part of the digest: an archive in another format must get another name.
FORMAT = b"tar, gzip, not compressed"
# Times and owners differ between checkouts. The launcher compares times of its own files with nothing.
_TIME = 315532800
# A block of deflate that is not compressed holds so much.
_BLOCK = 65535
_HEADER = bytes((0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF))


def build_archive(folder: Path, into: Path, name: str, inside: str = "") -> CodeArtifact:
    """Writes the archive below `into`. `inside`: the folder that its files lie in."""
    digest = folder_digest(folder, FORMAT + inside.encode())
    into.mkdir(parents=True, exist_ok=True)
    target = into / _named(name, digest)
    if not target.exists():
        unfinished = target.with_suffix(f".{os.getpid()}.tmp")
        unfinished.write_bytes(_gzip(_tar(folder, inside)))
        unfinished.replace(target)
    return CodeArtifact(target, digest, target.stat().st_size)


def archive_name(folder: Path, name: str, inside: str = "") -> str:
    """What the archive of this folder is called, without making it."""
    return _named(name, folder_digest(folder, FORMAT + inside.encode()))


def _named(name: str, digest: str) -> str:
    return "-".join(part for part in (name, f"{digest[:16]}.tar.gz") if part)


def _tar(folder: Path, inside: str) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, path in folder_entries(folder):
            data = path.read_bytes()
            entry = tarfile.TarInfo(f"{inside}/{name}" if inside else name)
            entry.size, entry.mtime = len(data), _TIME
            entry.mode = 0o755 if os.access(path, os.X_OK) else 0o644
            archive.addfile(entry, io.BytesIO(data))
    return content.getvalue()


def _gzip(data: bytes) -> bytes:
    """Not compressed, and written here: the zlibs of two machines give different bytes, at level 0 too."""
    blocks = [data[start : start + _BLOCK] for start in range(0, len(data), _BLOCK)] or [b""]
    body = b"".join(
        struct.pack("<BHH", number == len(blocks), len(block), len(block) ^ 0xFFFF) + block
        for number, block in enumerate(blocks, 1)
    )
    return _HEADER + body + struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)
