# SPDX-License-Identifier: Apache-2.0
"""System calls for namespaces and privileges that Python 3.11 does not have."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterable
from typing import Any

NEW_MOUNTS = 0x00020000
NEW_GROUPS = 0x02000000
NEW_HOSTNAME = 0x04000000
NEW_IPC = 0x08000000
NEW_USER = 0x10000000
NEW_PROCESSES = 0x20000000
NEW_NETWORK = 0x40000000
READ_ONLY, NO_SETUID, NO_DEVICES, NO_PROGRAMS = 0x1, 0x2, 0x4, 0x8
_REMOUNT, _BIND, _MOVE, _RECURSIVE, _PRIVATE = 0x20, 0x1000, 0x2000, 0x4000, 0x40000
_DETACH = 2
# Flags that the owner of a mount may have set. Another user's change must repeat them, or the kernel refuses it.
_KEPT = os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_NOATIME | os.ST_NODIRATIME
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITIES_VERSION = 0x20080522
_WORD = 0xFFFFFFFF
_JOIN_SESSION_KEYRING = 1
# Sets a filter without the mitigations that kernels before 5.16 enable with it: they slow down filtered processes.
_SET_FILTER, _ALLOW_SPECULATION = 1, 4
_STEP_SIZE = 8
# The C library has no functions for these calls, so they are called by number, which depends on the processor.
NUMBERS = {
    "x86_64": {"pivot_root": 155, "keyctl": 250, "seccomp": 317},
    "aarch64": {"pivot_root": 41, "keyctl": 219, "seccomp": 277},
    "riscv64": {"pivot_root": 41, "keyctl": 219, "seccomp": 277},
}


def unshare_namespaces(kinds: int) -> None:
    _raise_if_failed(_c_library().unshare(kinds), "unshare")


def enter_namespace(namespace: int, kind: int) -> None:
    """Moves this thread into the namespace of an open file."""
    _raise_if_failed(_c_library().setns(namespace, kind), "setns")


def bind_mount_all(source: str, target: str) -> None:
    """Mounts a folder at another place, with everything that is mounted below it."""
    _mount_file_system(source, target, _BIND | _RECURSIVE)


def move_mount(source: str, target: str) -> None:
    _mount_file_system(source, target, _MOVE)


def mount_memory(target: str, options: str = "", flags: int = 0) -> None:
    _mount_file_system("none", target, flags, "tmpfs", options)


def mount_kernel_files(kind: str, target: str, options: str = "", flags: int = 0) -> None:
    """Mounts a file system of the kernel: `proc`, `sysfs` or `devpts`."""
    _mount_file_system(kind, target, flags, kind, options)


def separate_mounts() -> None:
    """Hides new mounts from the rest of the machine: only this process and its children see them."""
    unshare_namespaces(NEW_MOUNTS)
    _mount_file_system("none", "/", _RECURSIVE | _PRIVATE)


def make_read_only(path: str) -> None:
    bind_mount_all(path, path)
    close_mount(path)


def close_mount(path: str, flags: int = READ_ONLY) -> None:
    """Changes a mount's flags. By default it becomes read-only."""
    _mount_file_system("none", path, _REMOUNT | _BIND | flags | os.statvfs(path).f_flag & _KEPT)


def enter_root(root: str) -> None:
    """Makes a mounted folder the root of this process, and removes everything outside of it."""
    os.chdir(root)
    # This puts the old root on top of the new one, from where it can be unmounted without a folder of its own.
    _raise_if_failed(_c_library().syscall(_system_call_number("pivot_root"), b".", b"."), "pivot_root")
    _raise_if_failed(_c_library().umount2(b".", _DETACH), "umount")
    os.chdir("/")


def _mount_file_system(source: str, target: str, flags: int, kind: str | None = None, options: str = "") -> None:
    words = (source.encode(), os.fsencode(target), kind.encode() if kind else None, flags, options.encode() or None)
    _raise_if_failed(_c_library().mount(*words), f"mount {target}")


def end_with_parent(signal: int) -> None:
    _c_library().prctl(_PR_SET_PDEATHSIG, signal, 0, 0, 0)


def adopt_orphans() -> None:
    """Makes the orphans of this process's children its own children."""
    _c_library().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def forbid_new_privileges() -> None:
    """From now on, programs that this process starts cannot get more privileges than it has."""
    _raise_if_failed(_c_library().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def keep_capabilities(kept: Iterable[int] = ()) -> None:
    """Drops all capabilities of this process except those with these numbers."""
    numbers = 0
    for number in kept:
        numbers |= 1 << number
    # Two words each for the effective, the permitted and the inheritable capabilities. None is inheritable.
    sets = (numbers & _WORD, numbers & _WORD, 0, numbers >> 32, numbers >> 32, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0)
    _raise_if_failed(_c_library().capset(header, (ctypes.c_uint32 * 6)(*sets)), "capset")


def drop_keys() -> None:
    """Leaves the kernel keyring of the user who started this process, so that its keys are out of reach."""
    if (
        _c_library().syscall(_system_call_number("keyctl"), _JOIN_SESSION_KEYRING, 0, 0, 0, 0) < 0
        and ctypes.get_errno() != errno.ENOSYS
    ):
        _raise_if_failed(-1, "keyctl")


class _Filter(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def has_filters() -> bool:
    """Whether the kernel supports filters of system calls: then a call without a program fails with EFAULT."""
    return _set_filter(None) != 0 and ctypes.get_errno() == errno.EFAULT


def filter_calls(program: bytes) -> None:
    """Installs a filter of system calls in this process. All its later child processes inherit it."""
    _raise_if_failed(_set_filter(ctypes.byref(_Filter(len(program) // _STEP_SIZE, program))), "seccomp")


def _set_filter(program: Any) -> int:
    return int(_c_library().syscall(_system_call_number("seccomp"), _SET_FILTER, _ALLOW_SPECULATION, program))


def allow_inspection(allowed: bool) -> None:
    """Sets whether processes of the same user may inspect this one's memory and files."""
    _raise_if_failed(_c_library().prctl(_PR_SET_DUMPABLE, int(allowed), 0, 0, 0), "prctl")


def _system_call_number(call: str) -> int:
    machine = os.uname().machine
    if machine not in NUMBERS:
        raise OSError(f"{call}: trainyard does not know the number of this system call on {machine}")
    return NUMBERS[machine][call]


def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _raise_if_failed(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
