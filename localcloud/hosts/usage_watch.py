# SPDX-License-Identifier: Apache-2.0
"""Checks at intervals how much a node uses: its disk, and its memory and processes if no control group limits them.

A node that uses too much is ended as a whole: the kernel kills a node faster than a program can start processes.

A node could move its files while they are counted, from where the count has not been to where it was. So its processes
stand still for each count that decides, which is made when the free space has changed by much of what the node may
still use, check by check: what others free at another time does not make up for what the node writes. What no count
finds, such as files without a name that are only mapped, ends the node when the disk is nearly full.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

# Seconds between two checks: often for processes, which can multiply within moments, less often for the disk. The pause
# is also a multiple of the last check's time, so that a node with many processes or files does not keep this busy.
_OFTEN, _SELDOM, _LONGEST = 0.1, 0.2, 1.0
_TIMES = 10
# Files are counted at least at this interval, even if the free space has hardly changed.
_COUNTED_SECONDS = 4.0
# How long all processes of a node may take to stop.
_STOPPING_SECONDS = 5.0
# What the first process does with all others at these signals.
STOP, CONTINUE = signal.SIGUSR1, signal.SIGUSR2
# The disk is nearly full if less than this share of what was free is left, or less than these bytes and files.
_NEARLY_FULL = 1 / 8
_NEARLY_FULL_LEFT = 4 << 30, 100_000
# The bytes and files that a node may have then, too.
_ALWAYS_ALLOWED = 64 << 20, 1000
_PAGE = os.sysconf("SC_PAGE_SIZE")
_BLOCK = 512
_GIBIBYTE = 1 << 30
# If less than this share of the memory is available, the machine itself is in danger.
_IN_DANGER = 1 / 16
# A mapped file that has no name any more, but is not in memory; and descriptors that are under way between sockets.
_MAPPED = re.compile(r"^\S+ \S+ \S+ \S+ [1-9]\d* +/(?!dev/|memfd:|SYSV).* \(deleted\)$", re.MULTILINE)
_UNDER_WAY = re.compile(r"^scm_fds:\s*[1-9]", re.MULTILINE)
_SHARED_OUT = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)


@dataclass
class UsageWatch:
    """The watch of a node: its first process, the folders that only it may write to, and its limits. `shared`: folders
    that other nodes may write to as well."""

    pid: int
    folders: Sequence[str]
    limits: Mapping[str, int]
    grouped: bool  # whether control groups limit its memory and processes
    printed: str  # the file that its output goes to, outside
    shared: Sequence[str] = ()
    _free: tuple[int, int] = field(init=False)
    _least: Mapping[str, tuple[float, float]] = field(init=False)
    _changed: tuple[int, int] = 0, 0
    _used: tuple[int, int] = 0, 0
    _count_at: float = 0.0
    _took: float = 0.0

    def __post_init__(self) -> None:
        self._free = _free_space(self.folders[0])
        self._least = {folder: _nearly_full_at(folder) for folder in (self.folders[0], *self.shared)}

    @property
    def pause(self) -> float:
        return min(max(_SELDOM if self.grouped else _OFTEN, _TIMES * self._took), _LONGEST)

    def check(self) -> str:
        """Checks the node. Returns why it must end, or ""."""
        began = time.monotonic()
        reason = self._output()
        if not reason and not self.grouped:
            pids = list(_descendants(self.pid))
            reason = self._processes(pids) or self._memory(pids)
        self._took = time.monotonic() - began
        return reason or self._disk()

    def _output(self) -> str:
        try:
            printed = os.stat(self.printed).st_size
        except FileNotFoundError:
            return ""
        limit = self.limits["output"]
        return f"it printed more than {_format_gibibytes(limit)}, the most a node may print" if printed > limit else ""

    def _processes(self, pids: Sequence[int]) -> str:
        count = sum(int(fields[17]) for fields in map(_process_fields, pids) if fields)
        limit = self.limits["processes"]
        return f"it had {count} processes and threads; {limit} is the most a node may have" if count > limit else ""

    def _memory(self, pids: Sequence[int]) -> str:
        # A quick upper bound, which counts shared pages once for each process. The exact number is computed if needed.
        used = sum(int(fields[21]) * _PAGE for fields in map(_process_fields, pids) if fields)
        used += sum(size for on_disk, size in self._nameless(pids) if not on_disk)
        rows = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        available, total = (int(rows[name].split()[0]) for name in ("MemAvailable", "MemTotal"))
        limit = self.limits["memory"] if available >= total * _IN_DANGER else self.limits["fair"]
        if used <= limit or (used := sum(map(_memory_of, pids))) <= limit:
            return ""
        allowed = f"{_format_gibibytes(limit)} is the most a node of this run may have"
        return f"it used {_format_gibibytes(used)} of memory; {allowed}"

    def _disk(self) -> str:
        room = {folder: self._room(folder) for folder in self._least}
        for folder in self.shared:
            if room[folder] < 1:
                return "the disk with the storages is nearly full, and this node may write to it"
        own = room[self.folders[0]]
        limits = self.limits["disk"], self.limits["inodes"]
        # When the disk is nearly full, the nodes that use the most end first, and then the others, down to none.
        limit, most_files = (
            max(int(limit * own), min(limit, always)) for limit, always in zip(limits, _ALWAYS_ALLOWED, strict=True)
        )
        free, began = _free_space(self.folders[0]), time.monotonic()
        # If the free space has changed by less than the node may still use, the node is within its limit.
        size, files = (abs(before - now) for before, now in zip(self._free, free, strict=True))
        self._free, self._changed = free, (self._changed[0] + size, self._changed[1] + files)
        left = limit - self._used[0], most_files - self._used[1]
        may_exceed = any(2 * one >= most for one, most in zip(self._changed, left, strict=True))
        if not may_exceed and began < self._count_at:
            return ""
        if may_exceed:
            with self._stopped() as stopped:
                used, reason = self._count(limit, most_files, own < 1)
            if stopped:
                self._changed, self._used = (0, 0), used
        else:  # in case others have freed as much as this node has written, within a single check
            _, reason = self._count(limit, most_files, own < 1)
        now = time.monotonic()
        self._count_at = now + max(_COUNTED_SECONDS, _TIMES * (now - began))
        return reason

    def _room(self, folder: str) -> float:
        """1 as long as the disk is not nearly full, and then down to 0 when it is."""
        now, least = _free_space(folder), self._least[folder]
        return min([1.0, *(one / most for one, most in zip(now, least, strict=True) if most)])

    def _count(self, limit: int, most_files: int, nearly_full: bool) -> tuple[tuple[int, int], str]:
        """The bytes and the files on the node's disk, and why it must end, or ""."""
        pids = list(_descendants(self.pid))
        if nearly_full and any(map(_hides_files, pids)):
            return (0, 0), "the disk is nearly full, and it holds files there that have no name"
        size, files = sum(size for on_disk, size in self._nameless(pids) if on_disk), 0
        so_full = ", because the disk is nearly full" if nearly_full else ""
        for more in _file_sizes(self.folders):
            size, files = size + more, files + 1
            if size > limit:
                most = f"{_format_gibibytes(limit)} to its disk, the most a node of this run may have{so_full}"
                return (size, files), f"it wrote more than {most}"
            if files > most_files:
                return (size, files), f"it made more than {most_files} files, the most a node may have{so_full}"
        return (size, files), ""

    @contextmanager
    def _stopped(self) -> Iterator[bool]:
        """Stops all processes of the node for the body. Whether they all have stopped in time."""
        try:
            with suppress(ProcessLookupError):
                os.kill(self.pid, STOP)
            deadline = time.monotonic() + _STOPPING_SECONDS
            while not (stopped := all(map(_is_stopped, _descendants(self.pid)))) and time.monotonic() < deadline:
                time.sleep(_STOPPING_SECONDS / 1000)
            yield stopped
        finally:
            with suppress(ProcessLookupError):
                os.kill(self.pid, CONTINUE)

    def _nameless(self, pids: Sequence[int]) -> Iterator[tuple[bool, int]]:
        """The sizes of open files without a name, each with whether it is on the disk (or else in memory)."""
        disk, seen = os.stat(self.folders[0]).st_dev, set()
        for pid in pids:
            try:
                opened = os.listdir(f"/proc/{pid}/fd")
            except OSError:
                continue
            for name in opened:
                try:
                    status = os.stat(f"/proc/{pid}/fd/{name}")
                except OSError:
                    continue
                if status.st_nlink == 0 and (status.st_dev, status.st_ino) not in seen:
                    seen.add((status.st_dev, status.st_ino))
                    yield status.st_dev == disk, status.st_blocks * _BLOCK


def _free_space(folder: str) -> tuple[int, int]:
    """The free bytes, and how many files can still be made (0 if the file system does not count them)."""
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize, status.f_favail


def _nearly_full_at(folder: str) -> tuple[float, float]:
    size, files = (
        min(one * _NEARLY_FULL, most) for one, most in zip(_free_space(folder), _NEARLY_FULL_LEFT, strict=True)
    )
    return size, files


def _is_stopped(pid: int) -> bool:
    """Whether no thread of a process runs. One that waits in the kernel (D) may wait for a process that has stopped."""
    try:
        stats = [Path(f"/proc/{pid}/task/{thread}/stat").read_text() for thread in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return True  # it has ended
    return all(text.rpartition(")")[2].split()[0] in "TtDZX" for text in stats)


def _hides_files(pid: int) -> bool:
    """Whether a process holds files that no count finds: mapped ones without a name, or in messages between sockets."""
    try:
        if _MAPPED.search(Path(f"/proc/{pid}/maps").read_text(errors="replace")):
            return True
        return any(_UNDER_WAY.search(path.read_text()) for path in Path(f"/proc/{pid}/fdinfo").iterdir())
    except OSError:
        return False


def _descendants(first: int) -> Iterator[int]:
    waiting = [first]
    while waiting:
        pid = waiting.pop()
        try:
            threads = os.listdir(f"/proc/{pid}/task")
            children = [Path(f"/proc/{pid}/task/{thread}/children").read_text() for thread in threads]
        except OSError:
            continue
        pids = [int(child) for text in children for child in text.split()]
        yield from pids
        waiting += pids


def _process_fields(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _memory_of(pid: int) -> int:
    """The memory of a process, with its share of the memory that it shares with others."""
    try:
        match = _SHARED_OUT.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
        return int(match[1]) * 1024 if match else 0
    except OSError:
        fields = _process_fields(pid)
        return int(fields[21]) * _PAGE if fields else 0


def _file_sizes(folders: Sequence[str]) -> Iterator[int]:
    """The size of each file. A folder too deep to read counts as the largest possible size."""
    waiting = list(folders)
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    yield status.st_blocks * _BLOCK
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                yield 1 << 62


def _format_gibibytes(size: int) -> str:
    return f"{size / _GIBIBYTE:.1f} GiB"
