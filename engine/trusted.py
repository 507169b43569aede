# SPDX-License-Identifier: Apache-2.0
"""What somebody else on this machine may have planted is not used: folders and programs are our own, no links.

Whoever may write to a cache chooses the programs that run as us. Standard library only: the local cloud's caches go by
this module, too.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

ROOT = 0


class PlantedError(OSError):
    """A file or folder that is not only ours to write; the text says whose, and what to do."""


def own_folder(below: Path, *names: str) -> Path:
    """`below`/name/name…, each made if it is not there, and refused if others may write to it."""
    below.mkdir(parents=True, exist_ok=True)
    for name in names:
        below = below / name
        try:
            below.mkdir(mode=0o755)
        except FileExistsError:
            require_own(below)
    return below


def require_own(path: Path) -> None:
    """PlantedError unless it is a plain file or folder of ours, or root's, that nobody else may write to."""
    if why := planted(path):
        raise PlantedError(f"{path} {why}")


def planted(path: Path) -> str:
    """Why it must not be used; empty where it may be, or is not there."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return ""
    if not (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
        kind = "is a link" if stat.S_ISLNK(found.st_mode) else "is neither a file nor a folder"
        return f"{kind}: remove it"
    if found.st_uid not in (os.geteuid(), ROOT):
        return f"belongs to the user {found.st_uid}, who could change what runs here: remove it, or use another place"
    # Where each user has a group of their own, its files are often written by the group, too.
    others = stat.S_IWOTH | (0 if found.st_gid == os.getegid() else stat.S_IWGRP)
    if found.st_mode & others:
        return f"may be written by others: chmod -R go-w {path}, if you trust what is in it, or remove it"
    return ""


def open_lock(path: Path) -> IO[bytes]:
    """A file to lock, made if it is not there. What is in it stays, and a link is not followed."""
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise PlantedError(f"{path} is a link: remove it") from None
        raise
    return os.fdopen(number, "r+b")
