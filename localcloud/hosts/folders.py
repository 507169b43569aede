# SPDX-License-Identifier: Apache-2.0
"""Opens what a node is shown, and mounts folders at any path of its root, also at paths that do not exist yet. For the
node's first process."""

from __future__ import annotations

import os
from pathlib import Path

from localcloud.hosts import kernel

_ON_THE_WAY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def hold(path: str) -> int:
    """Opens what lies at an absolute path, also a link itself, to show it. A link on the way is an error (OSError), for
    whoever may write there would choose what is shown."""
    *way, last = path.strip("/").split("/")
    folder = os.open("/", _ON_THE_WAY)
    try:
        for part in way:
            inner = os.open(part, _ON_THE_WAY, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(last, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)


def show(staged: str, target: str) -> None:
    """Moves a mounted folder to `target`, and makes that folder if needed."""
    wanted = Path(target)
    there = next(one for one in (wanted, *wanted.parents) if one.is_dir())
    if there != wanted and os.stat(there).st_dev != os.stat("/").st_dev:
        _widen(there)
    wanted.mkdir(parents=True, exist_ok=True)
    kernel.move_mount(staged, target)


def _widen(there: Path) -> None:
    """Covers one of the machine's folders with a folder in memory that shows the same entries and can get more."""
    held = os.open(there, os.O_RDONLY | os.O_DIRECTORY)
    try:
        kernel.mount_memory(str(there), "mode=755,size=1m", kernel.NO_SETUID | kernel.NO_DEVICES)
        for entry in os.scandir(held):
            copy, source = there / entry.name, f"/proc/self/fd/{held}/{entry.name}"
            if entry.is_symlink():
                copy.symlink_to(os.readlink(entry.name, dir_fd=held))
                continue
            if entry.is_dir():
                copy.mkdir()
            else:
                copy.touch()
            kernel.bind_mount_all(source, str(copy))
    finally:
        os.close(held)
