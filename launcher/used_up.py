# SPDX-License-Identifier: Apache-2.0
"""What a node has used up when its processes fail: its memory, by the kernel's count, and disks that are full.

A process that the kernel ends for lack of memory looks as if somebody had killed it, and "No space left on device" is
said of disks and of shared memory alike.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from launcher import exits

CONTROL_GROUPS = Path("/sys/fs/cgroup")
SHARED_MEMORY = "/dev/shm"
# By version of the kernel's interface.
_FILES = ("memory.events", "memory/memory.oom_control")
_KILLS = re.compile(r"^oom_kill (\d{1,18})$", re.MULTILINE)
# A file system with less free space takes no page any more.
_PAGE = 4096


def count_memory_kills(control_groups: Path = CONTROL_GROUPS) -> int:
    """How many processes the kernel has ended because this container used all its memory; 0 also if it does not say."""
    for name in _FILES:
        with suppress(OSError):
            found = _KILLS.search((control_groups / name).read_text(errors="replace"))
            return int(found[1]) if found else 0
    return 0


def used_up_memory(kills_before: int) -> str:
    """That the kernel has ended more processes since, in words; empty if it has not."""
    return exits.MEMORY_SYMPTOM if count_memory_kills() > kills_before else ""


def full_folder_words(folders: Iterable[str]) -> str:
    """The first folder whose file system is full, shared memory before others, in words; empty if none is. `folders`:
    where the node's processes write."""
    full = (folder for folder in dict.fromkeys((SHARED_MEMORY, *folders)) if _is_full(folder))
    return next((f"{folder} {exits.FULL_SYMPTOM}" for folder in full), "")


def _is_full(folder: str) -> bool:
    with suppress(OSError):
        status = os.statvfs(folder)
        return status.f_blocks > 0 and status.f_bavail * status.f_frsize < _PAGE
    return False
