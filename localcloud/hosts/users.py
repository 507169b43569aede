# SPDX-License-Identifier: Apache-2.0
"""As whom the processes of a run act: as nobody whom this machine knows, where its account can choose."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

# Numbers that systems give to no account, no service and no container: (first, how many). systemd documents both.
_FREE = ((0x70000000, 1 << 28), (60578, 606))


def describe_users() -> str:
    """As whom, for people."""
    if run_user("") is None:
        return f"as user {os.geteuid()} without any capability"
    return "as users whom this machine does not know"


def run_user(run: str) -> int | None:
    """A number of its own for each run; None where this account can be nobody but itself, without any capability."""
    if os.geteuid() != 0:
        return None
    mapped = list(_mapped())
    for first, count in _FREE:
        if any(begin <= first and first + count <= end for begin, end in mapped):
            return first + zlib.crc32(run.encode()) % count
    return None


def hand_over(folder: Path, user: int | None) -> None:
    """Gives a folder with all that is in it to the run's user."""
    if user is None:
        return
    for place, folders, files in os.walk(folder):
        for name in (".", *folders, *files):
            os.chown(os.path.join(place, name), user, user, follow_symlinks=False)


def first_closed(paths: Iterable[str]) -> str:
    """The first of these that only its owner may read; empty where all may be read by everybody."""
    for path in paths:
        status = os.stat(path)
        wanted = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(status.st_mode) else 0)
        if status.st_mode & wanted != wanted:
            return path
    return ""


def _mapped() -> Iterator[tuple[int, int]]:
    """What this process can be: the ranges of its user namespace."""
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        first, _, count = map(int, line.split())
        yield first, first + count
