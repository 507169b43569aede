# SPDX-License-Identifier: Apache-2.0
"""The user as whom the processes of a run act: if this account may choose, one that the machine does not know."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from localcloud.hosts import folders

# User numbers that no system gives to accounts, services or containers: (first, how many). systemd documents both.
_FREE = ((0x70000000, 1 << 28), (60578, 606))
_MACHINE_USERS = 1 << 16


def describe_users() -> str:
    """Says for people as whom runs act."""
    if run_user("") is None:
        return f"as user {os.geteuid()} without any capability"
    return "as users whom this machine does not know"


def run_user(run: str) -> int | None:
    """The user number of a run. None if this account can only act as itself; then runs have no capability."""
    if os.geteuid() != 0:
        return None
    mapped = list(_mapped())
    for first, count in _FREE:
        if any(begin <= first and first + count <= end for begin, end in mapped):
            return first + zlib.crc32(run.encode()) % count
    return None


def machine_users(machine: str) -> tuple[int, int] | None:
    """The users of a whole machine, as (first, how many): its root is the first of them. None if this account can only
    act as itself; then the machine has no user but root."""
    if os.geteuid() != 0:
        return None
    mapped = list(_mapped())
    for first, count in _FREE:
        if any(begin <= first and first + count <= end for begin, end in mapped):
            size = min(count, _MACHINE_USERS)
            return first + zlib.crc32(machine.encode()) % (count // size) * size, size
    return None


def hand_over(folder: Path, user: int | None) -> None:
    """Gives a folder with all that is in it to the run's user. One that is the user's stays as it is: a machine that
    starts again finds its files as it left them. Runs may write there meanwhile, so no link is followed: also one on
    the way is an OSError."""
    held = folders.hold(str(folder))
    try:
        status = os.fstat(held)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(f"{folder} is no folder")
        if user is not None and status.st_uid != user:
            _change_owner(held, user)
    finally:
        os.close(held)


def _change_owner(folder: int, user: int) -> None:
    for _, inner, files, place in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
        os.fchown(place, user, user)
        for name in (*inner, *files):
            os.chown(name, user, user, dir_fd=place, follow_symlinks=False)


def first_closed(paths: Iterable[str]) -> str:
    """The first of these paths that not everybody may read. Empty if everybody may read all."""
    for path in paths:
        status = os.lstat(path)
        wanted = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(status.st_mode) else 0)
        if status.st_mode & wanted != wanted:
            return path
    return ""


def _mapped() -> Iterator[tuple[int, int]]:
    """The ranges of user numbers that this process can become, as (first, end)."""
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        first, _, count = map(int, line.split())
        yield first, first + count
