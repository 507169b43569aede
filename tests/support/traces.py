# SPDX-License-Identifier: Apache-2.0
"""Finds what a local cloud may leave on this machine: processes, and network namespaces that they hold open."""

import os
from pathlib import Path


def processes_of(home: Path) -> list[str]:
    """The command lines of a cloud's running processes."""
    return [f"{process.name} {_text(process / 'cmdline')}" for process in _processes() if _works_in(process, home)]


def networks(home: Path) -> frozenset[str]:
    """Every network namespace that a process of a cloud is in or holds open. A cloud's namespaces have no names, so all
    others have ended. (The kernel reuses their numbers.)"""
    found = set()
    for process in _processes():
        for file in (process / "ns" / "net", *_open_files(process)) if _works_in(process, home) else ():
            try:
                target = os.readlink(file)
            except OSError:
                continue
            if target.startswith("net:["):
                found.add(target)
    return frozenset(found)


def sites_of(server: int) -> list[int]:
    """The site processes of a server."""
    return [
        int(process.name)
        for process in _processes()
        if "localcloud.hosts.namespaces" in _text(process / "cmdline") and _parent(process) == server
    ]


def groups_of(server: int) -> list[str]:
    """The control groups of a cloud and of its nodes."""
    return [str(path) for path in Path("/sys/fs/cgroup").rglob(f"trainyard-{server}")]


def of_node(namespace: str, pid: int) -> int:
    """The process id on this machine of a node's process, which has another id within the node."""
    for process in _processes():
        numbers = [line.split()[1:] for line in _text(process / "status").splitlines() if line.startswith("NSpid:")]
        if numbers and numbers[0][-1] == str(pid) and _link(process / "ns" / "pid") == namespace:
            return int(process.name)
    raise LookupError(f"no process {pid} in {namespace}")


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


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


def _works_in(process: Path, home: Path) -> bool:
    """Whether a process is of a cloud: the cloud's own have its folder as working directory, those of nodes have a home
    below it."""
    runs = "/".join(("", *home.parts[-3:], "runs", ""))
    return f"{_link(process / 'cwd')}/".startswith((f"{home}/", f"{home} (deleted)")) or runs in _text(
        process / "mountinfo"
    )
