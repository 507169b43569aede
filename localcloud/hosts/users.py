# SPDX-License-Identifier: Apache-2.0
"""The user of a run's processes: one that the machine does not know, if this account may change users."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from localcloud.hosts import folders

# User ids that no system gives to accounts, services or containers: (first, count). systemd documents both.
_FREE = ((0x70000000, 1 << 28), (60578, 606))
_MACHINE_USERS = 1 << 16
# The id that a run's user has inside its nodes.
ID_IN_NODE = 1000


def describe_users() -> str:
    """Describes the users that runs are carried out as, for people."""
    if run_user("") is None:
        return f"as user {os.geteuid()} without any capability"
    return "as users whom this machine does not know"


def run_user(run: str) -> int | None:
    """The user id of a run. None: this account cannot change users, so runs have its id and no capabilities."""
    if (free := _free_ids()) is None:
        return None
    first, count = free
    return first + zlib.crc32(run.encode()) % count


def machine_users(machine: str) -> tuple[int, int] | None:
    """The user ids of a whole machine, as (first, count); the first is its root. None: this account cannot change
    users, so the machine only has root."""
    if (free := _free_ids()) is None:
        return None
    first, count = free
    size = min(count, _MACHINE_USERS)
    return first + zlib.crc32(machine.encode()) % (count // size) * size, size


def _free_ids() -> tuple[int, int] | None:
    """The first range of free user ids that this process can change to, as (first, count)."""
    mapped = list(_changeable_ids()) if os.geteuid() == 0 else []
    for first, count in _FREE:
        if any(begin <= first and first + count <= end for begin, end in mapped):
            return first, count
    return None


def hand_over(folder: Path, user: int | None) -> None:
    """Gives a folder with all its content to the run's user. A folder that belongs to the user already is not changed,
    so a machine that starts again finds its files unchanged. Runs may write there meanwhile, so no links are followed;
    a link within the path is an OSError."""
    held = folders.open_without_links(str(folder))
    try:
        status = os.fstat(held)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(f"{folder} is not a folder")
        if user is not None and status.st_uid != user:
            _change_owner(held, user)
    finally:
        os.close(held)


def _change_owner(folder: int, user: int) -> None:
    for _, inner, files, place in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
        os.fchown(place, user, user)
        for name in (*inner, *files):
            os.chown(name, user, user, dir_fd=place, follow_symlinks=False)


def find_unreadable(paths: Iterable[str]) -> str:
    """The first of these paths that not everybody may read; empty if there is none."""
    for path in paths:
        status = os.lstat(path)
        readable = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(status.st_mode) else 0)
        if status.st_mode & readable != readable:
            return path
    return ""


def _changeable_ids() -> Iterator[tuple[int, int]]:
    """The ranges of user ids that this process can change to, as (first, end)."""
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        first, _, count = map(int, line.split())
        yield first, first + count
