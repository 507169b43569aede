# SPDX-License-Identifier: Apache-2.0
"""Walks through the folders of a script and opens its files, safely. It follows no links, even if a link replaces a
folder meanwhile, and it stops after a number of entries and after a time."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Callable

# The name of an object has 1024 bytes at most, so a deeper file could not be kept.
DEEPEST = 512
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Non-blocking, because a pipe may have replaced the file.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

# Decides whether to enter a folder, by its name, its status, and its open file descriptor.
Enters = Callable[[str, os.stat_result, int], bool]


@dataclass
class Budget:
    """How many entries several walks may look at together, and for how long. `cut`: entries were left out."""

    entries: int
    seconds: float
    cut: bool = field(default=False, init=False)
    _until: float = field(init=False)

    def __post_init__(self) -> None:
        self._until = time.monotonic() + self.seconds

    def spend(self) -> bool:
        """Spends one entry. Returns False if none is left."""
        self.entries -= 1
        if self.entries < 0 or time.monotonic() > self._until:
            self.cut = True
            return False
        return True


def regular_files(root: str, enters: Enters, budget: Budget, within: str = "") -> Iterator[tuple[str, os.stat_result]]:
    """The regular files by their paths below the root, upper folders first: all, or those `within` a folder. Other file
    systems are not entered."""
    device, left = -1, deque([within])
    while left:
        name = left.popleft()
        try:
            folder = open_below(root, name, _FOLDER)
        except OSError:
            continue  # gone, replaced by a link, or not readable
        try:
            status = os.fstat(folder)
            device = status.st_dev if device < 0 else device
            if status.st_dev != device or (name != within and not enters(name, status, folder)):
                continue
            for below, entry in _folder_entries(name, folder, budget):
                if stat.S_ISREG(entry.st_mode):
                    yield below, entry
                elif stat.S_ISDIR(entry.st_mode):
                    if below.count("/") < DEEPEST:
                        left.append(below)
                    else:
                        budget.cut = True
        finally:
            os.close(folder)


def _folder_entries(name: str, folder: int, budget: Budget) -> Iterator[tuple[str, os.stat_result]]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not budget.spend():
                    return
                try:
                    yield (f"{name}/{entry.name}" if name else entry.name), entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # removed meanwhile
    except OSError:
        return


def open_file(root: str, name: str) -> int:
    """Opens a regular file below the root for reading. OSError if it is not one, or if its path has a link."""
    file = open_below(root, name, _FILE)
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def open_below(root: str, name: str, flags: int) -> int:
    """Opens a path below the root, folder by folder, so that a link that appears in it is not followed."""
    *folders, last = [root, *name.split("/")] if name else [root]
    held = os.open(folders.pop(0), _FOLDER) if folders else None
    try:
        for part in folders:
            inner = os.open(part, _FOLDER, dir_fd=held)
            os.close(held)  # type: ignore[arg-type]  # open: there was a root
            held = inner
        return os.open(last, flags, dir_fd=held)
    finally:
        if held is not None:
            os.close(held)
