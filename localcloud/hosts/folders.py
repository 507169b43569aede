# SPDX-License-Identifier: Apache-2.0
"""Folders at paths that the machine need not have, for a process that has mounts of its own. Nothing of it is seen
outside that process and its children, and the machine's own folders stay as they are."""

from __future__ import annotations

import os
from pathlib import Path

from localcloud.hosts import kernel


def show(source: str, target: str, scratch: str) -> None:
    """Puts a folder where it is wanted, to be read only. `scratch` is any empty folder."""
    wanted = Path(target)
    there = next(one for one in (wanted, *wanted.parents) if one.is_dir())
    if there != wanted:
        _widen(there, wanted.relative_to(there), Path(scratch))
    kernel.bind_mount(source, target)
    kernel.close_mount(target)


def _widen(there: Path, more: Path, scratch: Path) -> None:
    """A folder of the machine as it is, with one more in it: a folder in memory that shows all the other has."""
    kernel.mount_memory(str(scratch))
    # What the scratch lies in comes first: later, all that is mounted by then would be mounted there once more.
    for entry in sorted(os.scandir(there), key=lambda entry: not scratch.is_relative_to(entry.path)):
        copy = scratch / entry.name
        if entry.is_symlink():
            copy.symlink_to(os.readlink(entry.path))
        elif entry.is_dir():
            copy.mkdir()
            kernel.bind_mount_all(entry.path, str(copy))
        else:
            copy.touch()
            kernel.bind_mount(entry.path, str(copy))
    (scratch / more).mkdir(parents=True, exist_ok=True)
    if there == there.parent:
        os.chroot(scratch)
        os.chdir("/")
    else:
        kernel.bind_mount_all(str(scratch), str(there))
