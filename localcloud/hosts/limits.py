# SPDX-License-Identifier: Apache-2.0
"""What a node may use at most: the lesser of what its job gives it and of this machine's share for runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from localcloud.hosts import groups

# Of the machine: all nodes together, so that it stays usable whatever they do; of the disk, what is free just now.
_MEMORY_SHARE, _PROCESS_SHARE, _DISK_SHARE = 3 / 4, 1 / 2, 1 / 2
# Clouds state none for these: far more than training needs, and far less than a machine has.
_PROCESSES, _OPEN_FILES, _FILES = 4096, 65536, 1_000_000
# What a node prints is kept twice: in its run's folder, and in the logging service.
_OUTPUT = 256 << 20


def of_machine() -> Mapping[str, int]:
    """For all nodes of a cloud together, by controller."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    memory = min(memory, groups.own_memory() or memory)
    most = min(int(Path("/proc/sys/kernel", name).read_text()) for name in ("pid_max", "threads-max"))
    return {"memory": int(memory * _MEMORY_SHARE), "pids": int(most * _PROCESS_SHARE)}


def of_node(memory: int, disk: int, nodes: int, folder: Path) -> dict[str, int]:
    """The lesser of what the node may have, in bytes (0: nobody says), and of its machine's share."""
    share = of_machine()
    memory = min(share["memory"], memory or share["memory"])
    free = os.statvfs(folder)
    room = int(free.f_bavail * free.f_frsize * _DISK_SHARE)
    return {
        "memory": memory,
        "fair": min(memory, share["memory"] // max(1, nodes)),
        "processes": min(_PROCESSES, share["pids"]),
        "files": _OPEN_FILES,
        "disk": min(room, disk or room),
        "output": _OUTPUT,
        # Some file systems make as many as they need, and count none.
        "inodes": min(_FILES, int(free.f_favail * _DISK_SHARE) or _FILES),
    }
