# SPDX-License-Identifier: Apache-2.0
"""What a local cloud could leave on this machine: processes, and network namespaces that only they hold."""

import os
from pathlib import Path


def processes_of(home: Path) -> list[str]:
    """Command lines of living processes that belong to a cloud: its server, the sites and supervisors it started."""
    found = []
    for process in _processes():
        if str(home) in (told := _text(process / "cmdline")) or (
            "localcloud.hosts.namespaces" in told and _home_of_parent(process) == str(home)
        ):
            found.append(f"{process.name} {told}")
    return found


def networks() -> frozenset[str]:
    """Every network namespace that a process is in or holds open; there are no others, since none has a name."""
    found = set()
    for process in _processes():
        for file in (process / "ns" / "net", *_open_files(process)):
            try:
                target = os.readlink(file)
            except OSError:
                continue
            if target.startswith("net:["):
                found.add(target)
    return frozenset(found)


def sites_of(server: int) -> list[int]:
    """The site processes that a server has started."""
    return [
        int(process.name)
        for process in _processes()
        if "localcloud.hosts.namespaces" in _text(process / "cmdline") and _parent(process) == server
    ]


def _processes() -> list[Path]:
    return [entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _open_files(process: Path) -> list[Path]:
    try:
        return list((process / "fd").iterdir())
    except OSError:
        return []


def _text(path: Path) -> str:
    try:
        return path.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def _parent(process: Path) -> int:
    fields = _text(process / "stat").rpartition(")")[2].split()
    return int(fields[1]) if fields else 0


def _home_of_parent(process: Path) -> str:
    try:
        return os.readlink(f"/proc/{_parent(process)}/cwd")
    except OSError:
        return ""
