# SPDX-License-Identifier: Apache-2.0
"""Builds the file system of a node, in its first process. It has only those files of the machine that the node may see.
Folders can be mounted at any path, also at paths that do not exist yet."""

from __future__ import annotations

import glob
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from localcloud.hosts import kernel

_ON_THE_WAY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
# The settings in `/etc` that libraries and interpreters need. Files that may have secrets (pip.conf, profile.d) are not
# among them.
_SETTINGS = (
    "alternatives", "ca-certificates", "crypto-policies", "debian_version", "fonts", "gai.conf", "host.conf", "java-*",
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "libnl-3", "locale.alias", "localtime", "magic", "mime.types",
    "nvidia", "OpenCL", "openmpi", "os-release", "pki/ca-trust/extracted", "pki/tls/certs", "pki/tls/openssl.cnf",
    "protocols", "python3*", "services", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone",
    "vulkan",
)  # fmt: skip
# The devices that a node sees, if the machine has them.
_DEVICES = (
    "null", "zero", "full", "random", "urandom", "tty", "accel", "dri", "habanalabs*", "infiniband", "kfd", "nvidia*",
)  # fmt: skip
_LINKS = {
    "dev/fd": "/proc/self/fd", "dev/stdin": "/proc/self/fd/0", "dev/stdout": "/proc/self/fd/1",
    "dev/stderr": "/proc/self/fd/2", "dev/ptmx": "pts/ptmx", "etc/mtab": "/proc/self/mounts", "var/run": "../run",
    "var/tmp": "../tmp",
}  # fmt: skip
# Folders of /proc: the kernel's settings are read-only, and files about the rest of the machine are empty.
_CLOSED = ("sys", "bus", "fs", "irq", "sysrq-trigger")
_EMPTY = ("acpi", "kcore", "keys", "latency_stats", "sched_debug", "scsi", "timer_list")
_EMPTY_FILES = frozenset(f"/proc/{name}" for name in _EMPTY)
_OCTAL = re.compile(rb"\\([0-7]{3})")
_SAFE = kernel.NO_SETUID | kernel.NO_DEVICES
_ROOT_OPTIONS = "mode=755,size=16m,nr_inodes=65536"


def open_without_links(path: str) -> int:
    """Opens the file, folder or link at an absolute path, to mount it. A link within the path is an OSError: otherwise
    anybody who may write there could choose what is mounted."""
    *way, last = path.strip("/").split("/")
    folder = os.open("/", _ON_THE_WAY)
    try:
        for part in way:
            inner = os.open(part, _ON_THE_WAY, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(last, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)


def mount_at(staged: str, target: str) -> None:
    """Moves a mounted folder to `target`, and makes that folder if needed."""
    path = Path(target)
    there = next(folder for folder in (path, *path.parents) if folder.is_dir())
    if there != path and os.stat(there).st_dev != os.stat("/").st_dev:
        _make_extensible(there)
    path.mkdir(parents=True, exist_ok=True)
    kernel.move_mount(staged, target)


def _make_extensible(there: Path) -> None:
    """Covers a folder of the machine with one in memory that has the same entries, and to which more can be added."""
    held = os.open(there, os.O_RDONLY | os.O_DIRECTORY)
    try:
        kernel.mount_memory(str(there), "mode=755,size=1m", kernel.NO_SETUID | kernel.NO_DEVICES)
        for entry in os.scandir(held):
            copy, source = there / entry.name, f"/proc/self/fd/{held}/{entry.name}"
            if entry.is_symlink():
                copy.symlink_to(os.readlink(entry.name, dir_fd=held))
                continue
            if entry.is_dir():
                copy.mkdir()
            else:
                copy.touch()
            kernel.bind_mount_all(source, str(copy))
    finally:
        os.close(held)


def build_file_system(sandbox: dict[str, Any]) -> int:
    """Builds the file system and enters it. Returns `/proc/sys/user` as an open folder that can still be written to."""
    root = Path(sandbox["root"])
    kernel.separate_mounts()
    kernel.mount_memory(str(root), _ROOT_OPTIONS, _SAFE)
    for name in ("proc", "sys", "dev/shm", "dev/pts", "run", "var"):
        (root / name).mkdir(parents=True, exist_ok=True)
    own = [root / target.lstrip("/") for _, target in sandbox["own"]]
    if sandbox.get("small_disk"):
        sandbox = {**sandbox, "own": _copy_to_small_disk(root, sandbox)}
    for source, target in _list_shown_files(sandbox):
        _refuse_links_inside(root / target.lstrip("/"), own)
        _show_source(source, root / target.lstrip("/"))
    for name, target in _LINKS.items():
        if not os.path.lexists(root / name):  # on a whole machine's disk it exists since the first start
            (root / name).symlink_to(target)
    shared = f"mode=1777,size={sandbox['limits']['memory'] // 2}"
    kernel.mount_memory(str(root / "dev/shm"), shared, _SAFE | kernel.NO_PROGRAMS)
    # The kernel's file systems: this node's processes, network and terminals.
    flags = kernel.NO_SETUID | kernel.NO_PROGRAMS
    kernel.mount_kernel_files("devpts", str(root / "dev/pts"), "newinstance,ptmxmode=0666,mode=620", flags)
    flags |= kernel.NO_DEVICES
    kernel.mount_kernel_files("proc", str(root / "proc"), flags=flags)
    kernel.mount_kernel_files("sysfs", str(root / "sys"), flags=flags | kernel.READ_ONLY)
    _show_control_groups(root, sandbox)
    staged = [_stage_mount(root, number, source) for number, (source, *_) in enumerate(sandbox["folders"])]
    # From here on all paths stay inside, also through links.
    kernel.enter_root(str(root))
    writable = set()
    for folder, (_, target, may_write) in zip(staged, sandbox["folders"], strict=True):
        mount_at(folder, target)
        os.rmdir(folder)
        writable |= {os.path.realpath(target)} if may_write else set()
    users = os.open("/proc/sys/user", os.O_RDONLY | os.O_DIRECTORY)
    for name in (*_CLOSED, *_EMPTY):
        hidden = f"/proc/{name}"
        if name in _CLOSED and os.path.exists(hidden):
            kernel.bind_mount_all(hidden, hidden)
        elif os.path.isdir(hidden):
            kernel.mount_memory(hidden, "size=4k,mode=555", _SAFE)
        elif os.path.exists(hidden):
            kernel.bind_mount_all("/dev/null", hidden)
    # Every mount except the node's own becomes read-only, and ignores set-user-id bits and devices.
    open_ = {*writable, *(target for _, target in sandbox["own"]), "/proc", "/dev/shm", "/dev/pts"}
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        # The kernel's list escapes some characters as octal numbers.
        path = os.fsdecode(_OCTAL.sub(lambda match: bytes([int(match[1], 8)]), line.split()[4]))
        flags = kernel.NO_SETUID | (0 if path in open_ else kernel.READ_ONLY)
        devices = path.startswith("/dev/") or path in _EMPTY_FILES
        kernel.close_mount(path, flags | (0 if devices else kernel.NO_DEVICES))
    return users


def _copy_to_small_disk(root: Path, sandbox: dict[str, Any]) -> list[tuple[str, str]]:
    """Copies the node's own folders to a disk in memory. Returns them there."""
    disk = root / ".disk"
    disk.mkdir()
    kernel.mount_memory(str(disk), f"mode=755,size={sandbox['small_disk']}", _SAFE)
    copies = []
    for number, (source, target) in enumerate(sandbox["own"]):
        copy = disk / str(number)
        shutil.copytree(source, copy, symlinks=True)
        for path in (copy, *copy.rglob("*")) if sandbox["user"] else ():
            os.chown(path, sandbox["user"], sandbox["user"], follow_symlinks=False)
        copies.append((str(copy), target))
    return copies


def _stage_mount(root: Path, number: int, source: str) -> str:
    name = f".mount-{number}"
    (root / name).mkdir()
    # Other runs that share the folder around it may put a link in its place at any time.
    held = open_without_links(source)
    try:
        kernel.bind_mount_all(f"/proc/self/fd/{held}", str(root / name))
    finally:
        os.close(held)
    return f"/{name}"


def _list_shown_files(sandbox: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The files that the node sees, as (source, target): system, settings and devices, then the node's own folders."""
    for name in _SYSTEM:
        yield f"/{name}", name
    paths = list(_matching_paths("/dev", _DEVICES))
    if not sandbox["machine"]:  # the disk of a whole machine has them
        paths += _matching_paths("/etc", _SETTINGS)
    # On some systems the paths to settings contain links.
    parts = [(os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)), path) for path in paths]
    # Folders come before their content. Otherwise the node's own `/tmp` would hide an interpreter under `/tmp`.
    yield from sorted([*parts, *sandbox["own"], *sandbox["shown"]], key=lambda pair: pair[1].rstrip("/").count("/"))


def _matching_paths(folder: str, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield from sorted(glob.glob(f"{folder}/{name}"))


def copy_settings(target: Path) -> None:
    """Copies the settings of `/etc` that libraries need to a new disk, where the machine may change them."""
    for path in map(Path, _matching_paths("/etc", _SETTINGS)):
        copy = target / path.relative_to("/etc")
        copy.parent.mkdir(parents=True, exist_ok=True)
        with suppress(PermissionError, shutil.Error):  # files that this account may not read are left out
            if path.is_symlink():
                copy.symlink_to(os.readlink(path))
            elif path.is_dir():
                shutil.copytree(path, copy, symlinks=True, dirs_exist_ok=True)
            else:
                shutil.copyfile(path, copy)


def _refuse_links_inside(target: Path, own: Iterable[Path]) -> None:
    """Fails if a link on a machine's disk would lead out of it: at this point paths still begin outside."""
    for folder in own:
        if folder in target.parents:
            between = [path for path in target.parents if folder in path.parents]
            if any(path.is_symlink() for path in between):
                raise OSError(f"on its disk a link is in the way of {target.name}, which the machine needs")


def _show_source(source: str, target: Path) -> None:
    """Shows a file or folder, or copies a link. Does nothing if the source is missing."""
    if target.is_symlink():
        return
    try:
        held = open_without_links(source)
    except FileNotFoundError:
        return
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        kind = os.fstat(held).st_mode
        if stat.S_ISLNK(kind):
            target.symlink_to(os.readlink("", dir_fd=held))
            return
        if stat.S_ISDIR(kind):
            target.mkdir(exist_ok=True)
        elif not target.exists():  # within a folder that is shown already, the file exists
            target.touch()
        kernel.bind_mount_all(f"/proc/self/fd/{held}", str(target))
    finally:
        os.close(held)


def _show_control_groups(root: Path, sandbox: dict[str, Any]) -> None:
    """Shows the node's own control groups, where Dask and Ray read how much memory they have."""
    place, folders = root / "sys/fs/cgroup", sandbox["groups"] or {}
    if not folders or not place.is_dir():
        return
    if sandbox["version"] == 1:
        kernel.mount_memory(str(place), "mode=755,size=4k", _SAFE)
    for controller, folder in folders.items() if sandbox["version"] == 1 else (("", folders["memory"]),):
        (place / controller).mkdir(exist_ok=True)
        kernel.bind_mount_all(folder, str(place / controller))
