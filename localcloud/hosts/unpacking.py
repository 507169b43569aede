# SPDX-License-Identifier: Apache-2.0
"""Unpacks archives. No file lands outside the target folder."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path


def unzip(source: Path, target: Path) -> None:
    """Unpacks a ZIP archive with its file modes. Python itself keeps names such as `../x` inside."""
    with zipfile.ZipFile(source) as archive:
        for item in archive.infolist():
            written = Path(archive.extract(item, target))
            mode = item.external_attr >> 16 & 0o777
            if mode and written.is_file():
                written.chmod(mode | 0o600)


def untar(source: Path, target: Path) -> None:
    """Unpacks a TAR archive with Python's data filter. The first releases of 3.11, such as Debian's, do not have it."""
    with tarfile.open(source) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(target, filter="data")
            return
        # We check each member ourselves here. The filter does nothing: it only avoids the warning about a missing one.
        archive.extraction_filter = lambda member, path: member
        for member in archive:
            _require_inside(target.resolve(), member)
            archive.extract(member, target)


def _require_inside(target: Path, member: tarfile.TarInfo) -> None:
    """Raises if a member or its link leads outside. Links that were unpacked before are followed."""
    placed = (target / member.name).resolve()
    led_to = placed
    if member.issym():
        led_to = (placed.parent / member.linkname).resolve()
    elif member.islnk():
        led_to = (target / member.linkname).resolve()
    elif not (member.isfile() or member.isdir()):
        raise tarfile.TarError(f"{member.name!r} is neither a file nor a folder nor a link")
    if not (placed.is_relative_to(target) and led_to.is_relative_to(target)):
        raise tarfile.TarError(f"{member.name!r} leads out of the archive")
