# SPDX-License-Identifier: Apache-2.0
"""Archives in folders: nothing of one lands outside its own."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path


def unzip(source: Path, target: Path) -> None:
    """With the modes that the files had; names that climb are made harmless by Python itself."""
    with zipfile.ZipFile(source) as archive:
        for item in archive.infolist():
            written = Path(archive.extract(item, target))
            mode = item.external_attr >> 16 & 0o777
            if mode and written.is_file():
                written.chmod(mode | 0o600)


def untar(source: Path, target: Path) -> None:
    """By Python's filter for data where it has one: the first releases of 3.11, Debian's among them, do not."""
    with tarfile.open(source) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(target, filter="data")
            return
        # Each member is judged here, so a Python that has filters, and warns where none is named, leaves it as it is.
        archive.extraction_filter = lambda member, path: member
        for member in archive:
            _require_inside(target.resolve(), member)
            archive.extract(member, target)


def _require_inside(target: Path, member: tarfile.TarInfo) -> None:
    """Asked of one after the other: a link that is there already is seen through."""
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
