# SPDX-License-Identifier: Apache-2.0
"""Refuses files and folders that another user of this machine may have planted: they must be ours, and no links.

Whoever can write to a cache decides which programs this account runs. The module also makes folders private.
Standard library only: the local cloud's caches use it too.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

ROOT = 0
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class PlantedError(OSError):
    """A file or folder that others may write to. The text says who, and what to do."""


def own_folder(below: Path, *names: str) -> Path:
    """Makes the folder `below`/name/name…. Raises PlantedError if others may write to one that exists."""
    below.mkdir(parents=True, exist_ok=True)
    for name in names:
        below = below / name
        try:
            below.mkdir(mode=0o755)
        except FileExistsError:
            require_own(below)
    return below


def require_own(path: Path) -> None:
    """Raises PlantedError unless the path is a file or folder of ours or root's that nobody else may write to."""
    if why := why_planted(path):
        raise PlantedError(f"{path} {why}")


def why_planted(path: Path) -> str:
    """Why the path must not be used. Empty if it may be used, or does not exist."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return ""
    if not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
        kind = "is a link" if stat.S_ISLNK(status.st_mode) else "is neither a file nor a folder"
        return f"{kind}: remove it"
    if status.st_uid not in (os.geteuid(), ROOT):
        return f"belongs to the user {status.st_uid}, who could change what runs here: remove it, or use another place"
    # Some systems give each user a private group, and make files writable for it. That is safe.
    others = stat.S_IWOTH | (0 if status.st_gid == os.getegid() else stat.S_IWGRP)
    if status.st_mode & others:
        return f"may be written by others: chmod -R go-w {path}, if you trust what is in it, or remove it"
    return ""


def private_folder(path: Path) -> Path:
    """Makes a folder that only its owner may enter, or closes an existing one to others. Parents stay as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        _close_to_others(path)
    return path


def close_below(folder: Path) -> None:
    """Removes other accounts' rights from everything in the folder: Pulumi's engine makes files that all can read."""
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            _close_to_others(Path(place, name))


def _close_to_others(path: Path) -> None:
    """Skips files that another command removes at the same time, and files of other accounts."""
    try:
        mode = path.lstat().st_mode
        if mode & _OTHERS and not stat.S_ISLNK(mode):
            path.chmod(stat.S_IMODE(mode) & ~_OTHERS)
    except (FileNotFoundError, PermissionError):
        pass


def open_lock(path: Path) -> IO[bytes]:
    """Opens a lock file, and makes it if needed. Keeps its content, and does not follow a link."""
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise PlantedError(f"{path} is a link: remove it") from None
        raise
    return os.fdopen(number, "r+b")
