# SPDX-License-Identifier: Apache-2.0
"""The limits of nodes, and the control groups by which the kernel enforces limits of memory and processes.

A node's limits are those of its job, or its part of this machine if that is less. One control group holds all nodes of
a cloud and is limited to their share of this machine. Inside it, each node has a group of its own. If this account may
not make control groups, the watcher in `usage_watch.py` enforces the limits instead.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from localcloud import files

CONTROLLERS = ("memory", "pids")
_PREFIX = "trainyard-"
# The files of a controller's limit, by version of the kernel's interface. Swap is limited too.
_LIMITS = {
    "memory": (("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"), ("memory.max",)),
    "pids": (("pids.max",), ("pids.max",)),
}
_KILLED = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)
_REMOVED_SECONDS = 2.0
# The share of the machine for all nodes together, so that it stays usable. For the disk: a share of the free space.
_MEMORY_SHARE, _PROCESS_SHARE, _DISK_SHARE = 3 / 4, 1 / 2, 1 / 2
# Clouds do not limit these. The values are much more than training needs, and much less than a machine has.
_PROCESSES, _OPEN_FILES, _FILES = 4096, 65536, 1_000_000
# What the kernel counts for all processes of an account together: the most of one node. A run gets a share of the rest.
_COUNTED = {"max_inotify_instances": 64, "max_inotify_watches": 65536}
_COUNTED_SHARE = 1 / 8
# The limit of a node's output, which is stored twice: in its run's folder and in the logging service.
_OUTPUT = 256 << 20


@dataclass(frozen=True)
class ControlGroups:
    """A control group: one folder for each controller. In version 2 all controllers share a folder."""

    folders: Mapping[str, str]
    version: int = 1

    def child(self, name: str) -> ControlGroups:
        return ControlGroups(
            {controller: f"{folder}/{name}" for controller, folder in self.folders.items()}, self.version
        )

    def parent(self) -> ControlGroups:
        return ControlGroups({name: os.path.dirname(folder) for name, folder in self.folders.items()}, self.version)

    def make(self, limits: Mapping[str, int], passed_on: bool = False) -> None:
        """Makes the group with these limits. With `passed_on`, groups inside it can have limits of their own."""
        for controller, folder in self.folders.items():
            Path(folder).mkdir(exist_ok=True)
            for number, name in enumerate(_LIMITS[controller][self.version - 1]):
                with suppress(*((FileNotFoundError, PermissionError) if number else ())):  # a kernel without it
                    Path(folder, name).write_text(str(limits[controller]))
        if self.version == 2:
            with suppress(OSError):
                Path(self.folders["memory"], "memory.swap.max").write_text("0")
            if passed_on:
                Path(self.folders["memory"], "cgroup.subtree_control").write_text("+memory +pids")

    def join(self, pid: int) -> None:
        for folder in set(self.folders.values()):
            Path(folder, "cgroup.procs").write_text(str(pid))

    def killed_for_memory(self) -> int:
        """How many processes the kernel has ended because the group was out of memory."""
        name = "memory.oom_control" if self.version == 1 else "memory.events"
        with suppress(OSError):
            match = _KILLED.search(Path(self.folders["memory"], name).read_text())
            return int(match[1]) if match else 0
        return 0

    def remove(self, seconds: float | None = None) -> None:
        """Removes the group once it is empty. The kernel may need a moment until the last process has left."""
        ends = time.monotonic() + (_REMOVED_SECONDS if seconds is None else seconds)
        for folder in set(self.folders.values()):
            while os.path.isdir(folder):
                with suppress(OSError):
                    os.rmdir(folder)
                    break
                if time.monotonic() > ends or _has_subgroups(folder):
                    break
                time.sleep(0.005)


def make_cloud_group(limits: Mapping[str, int]) -> ControlGroups | None:
    """Makes the group of this cloud, and removes those of killed clouds. None if this account may not make groups."""
    base = _base_group()
    if base is None:
        return None
    _remove_groups_of_dead_clouds(base)
    groups = base.child(f"{_PREFIX}{os.getpid()}")
    try:
        groups.make(limits, passed_on=True)
    except OSError:
        groups.remove()
        return None
    return groups


def memory_limit() -> int | None:
    """The memory limit of the group that this process is in. None if there is none."""
    base = _base_group()
    if base is None:
        return None
    name = _LIMITS["memory"][base.version - 1][0]
    with suppress(OSError, ValueError):
        return int(Path(base.folders["memory"], name).read_text())
    return None


def _has_subgroups(folder: str) -> bool:
    with suppress(OSError), os.scandir(folder) as entries:
        return any(entry.is_dir() for entry in entries)
    return False


def _remove_groups_of_dead_clouds(base: ControlGroups) -> None:
    for folder in set(base.folders.values()):
        for left in Path(folder).glob(f"{_PREFIX}*"):
            if not files.process_start_time(left.name.removeprefix(_PREFIX)):  # its cloud is neither alive nor a zombie
                for path in (*left.glob("*/"), left):
                    with suppress(OSError):
                        os.rmdir(path)


def _base_group() -> ControlGroups | None:
    """The group in which new groups can be made: that of this process, or one above it."""
    mine = dict(_own_group_folders())
    first = {name: folder for name in CONTROLLERS if (folder := mine.get(name)) and _is_writable_group(folder)}
    if len(first) == len(CONTROLLERS):
        return ControlGroups(first, 1)
    above = mine.get("", "")
    # A group with processes cannot delegate controllers. A group above it can, if this account may write there.
    while os.path.exists(f"{above}/cgroup.controllers"):
        with suppress(OSError):
            passed_on = Path(above, "cgroup.subtree_control").read_text().split()
            if set(CONTROLLERS) <= set(passed_on) and _is_writable_group(above):
                return ControlGroups(dict.fromkeys(CONTROLLERS, above), 2)
        above = os.path.dirname(above)
    return None


def _is_writable_group(folder: str) -> bool:
    return os.access(folder, os.W_OK) and os.access(f"{folder}/cgroup.procs", os.W_OK)


def _own_group_folders() -> Iterator[tuple[str, str]]:
    """The folder of this process's group by controller. The folder of version 2 has an empty name."""
    paths = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        paths.update(dict.fromkeys(names.split(","), path))
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split()[:3]
        root, place = before.split()[3:5]
        controllers = [""] if kind == "cgroup2" else options.split(",") if kind == "cgroup" else []
        for name in controllers:
            if name in paths and f"{paths[name]}/".startswith(root.rstrip("/") + "/"):
                yield name, (place + paths[name][len(root.rstrip("/")) :]).rstrip("/")


def machine_limits() -> Mapping[str, int]:
    """The limits of all nodes of a cloud together, by controller."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    memory = min(memory, memory_limit() or memory)
    most = min(int(Path("/proc/sys/kernel", name).read_text()) for name in ("pid_max", "threads-max"))
    return {"memory": int(memory * _MEMORY_SHARE), "pids": int(most * _PROCESS_SHARE)}


def node_limits(memory: int, disk: int, nodes: int, folder: Path) -> dict[str, int]:
    """The limits of one node. `memory` and `disk` are in bytes, 0 if its job gives none."""
    share = machine_limits()
    memory = min(share["memory"], memory or share["memory"])
    free = os.statvfs(folder)
    room = int(free.f_bavail * free.f_frsize * _DISK_SHARE)
    counted: dict[str, int] = {}
    for name, most in _COUNTED.items():
        with suppress(FileNotFoundError):
            allowed = int(Path("/proc/sys/user", name).read_text())
            counted[name] = min(most, max(1, int(allowed * _COUNTED_SHARE) // max(1, nodes)))
    return {
        "memory": memory,
        "fair": min(memory, share["memory"] // max(1, nodes)),
        "processes": min(_PROCESSES, share["pids"]),
        "files": _OPEN_FILES,
        "disk": min(room, disk or room),
        "output": _OUTPUT,
        **counted,
        # Some file systems do not count files and report 0.
        "inodes": min(_FILES, int(free.f_favail * _DISK_SHARE) or _FILES),
    }
