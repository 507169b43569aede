# SPDX-License-Identifier: Apache-2.0
"""Folders at paths that a node need not have, for the first process of a node, inside the node's own root."""

from __future__ import annotations

import os
from pathlib import Path

from localcloud.hosts import kernel


def show(staged: str, target: str) -> None:
    """Moves a mounted folder to where it is wanted."""
    wanted = Path(target)
    there = next(one for one in (wanted, *wanted.parents) if one.is_dir())
    if there != wanted and os.stat(there).st_dev != os.stat("/").st_dev:
        _widen(there)
    wanted.mkdir(parents=True, exist_ok=True)
    kernel.move_mount(staged, target)


def _widen(there: Path) -> None:
    """Puts a folder in memory over one of the machine's, which shows all that the other has and can have more."""
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
