# SPDX-License-Identifier: Apache-2.0
"""The system calls about namespaces that Python 3.11 has no names for."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

NEW_MOUNTS = 0x00020000
NEW_HOSTNAME = 0x04000000
NEW_USER = 0x10000000
NEW_NETWORK = 0x40000000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 0x1, 0x20, 0x1000, 0x4000, 0x40000
# What a mount may have had from those who own it; who changes it without owning it has to say it again.
_KEPT = os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_NOATIME | os.ST_NODIRATIME
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def unshare(kinds: int) -> None:
    _checked(_libc().unshare(kinds), "unshare")


def enter(namespace: int, kind: int) -> None:
    """Puts this thread into a namespace that an open file stands for."""
    _checked(_libc().setns(namespace, kind), "setns")


def bind_mount(source: str, target: str) -> None:
    _mount(source, target, _BIND)


def bind_mount_all(source: str, target: str) -> None:
    """With everything that is mounted below it."""
    _mount(source, target, _BIND | _RECURSIVE)


def mount_memory(target: str) -> None:
    _mount("none", target, 0, "tmpfs")


def own_mounts() -> None:
    """What is mounted from now on is seen by this process and its children only."""
    unshare(NEW_MOUNTS)
    _mount("none", "/", _RECURSIVE | _PRIVATE)


def own_users() -> None:
    """Who is nobody special may mount from now on, and is still the same user for all else."""
    user, group = os.geteuid(), os.getegid()
    unshare(NEW_USER)
    for name, content in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path("/proc/self", name).write_text(content)


def make_read_only(path: str) -> None:
    bind_mount_all(path, path)
    close_mount(path)


def close_mount(path: str) -> None:
    """Nobody writes through this mount any more."""
    _mount("none", path, _REMOUNT | _BIND | _READ_ONLY | os.statvfs(path).f_flag & _KEPT)


def _mount(source: str, target: str, flags: int, kind: str | None = None) -> None:
    _checked(_libc().mount(source.encode(), target.encode(), kind.encode() if kind else None, flags, None), "mount")


def end_with_parent(signal: int) -> None:
    _libc().prctl(_PR_SET_PDEATHSIG, signal, 0, 0, 0)


def adopt_orphans() -> None:
    """What the children of this process leave behind becomes its own child."""
    _libc().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
