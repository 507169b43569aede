# SPDX-License-Identifier: Apache-2.0
"""The limits of a node: those of its job, or its part of this machine's share for runs if that is less."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from localcloud.hosts import groups

# The share of the machine for all nodes together, so that it stays usable. For the disk: a share of the free space.
_MEMORY_SHARE, _PROCESS_SHARE, _DISK_SHARE = 3 / 4, 1 / 2, 1 / 2
# Clouds do not limit these. The values are much more than training needs, and much less than a machine has.
_PROCESSES, _OPEN_FILES, _FILES = 4096, 65536, 1_000_000
# The limit of a node's output, which is stored twice: in its run's folder and in the logging service.
_OUTPUT = 256 << 20


def machine_limits() -> Mapping[str, int]:
    """The limits of all nodes of a cloud together, by controller."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    memory = min(memory, groups.memory_limit() or memory)
    most = min(int(Path("/proc/sys/kernel", name).read_text()) for name in ("pid_max", "threads-max"))
    return {"memory": int(memory * _MEMORY_SHARE), "pids": int(most * _PROCESS_SHARE)}


def node_limits(memory: int, disk: int, nodes: int, folder: Path) -> dict[str, int]:
    """The limits of one node. `memory` and `disk` are in bytes, 0 if its job gives none."""
    share = machine_limits()
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
        # Some file systems do not count files and report 0.
        "inodes": min(_FILES, int(free.f_favail * _DISK_SHARE) or _FILES),
    }
