# SPDX-License-Identifier: Apache-2.0
"""Measures this node's activity cheaply: output, progress, processor, disk, network and GPU. It needs no package.

A node that hangs still shows some activity: threads poll, connections are kept alive, some frameworks print warnings.
That is noise. Each framework's noise is a row here; docs/launcher.md says what was measured.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Mapping, Tuple

from launcher.devices import Gpus


@dataclass(frozen=True)
class Noise:
    """The most that a hanging node uses: share of one core outside the kernel, and network bytes a second. `complaint`
    matches the lines that it still prints. `once`: only the first of them is passed on, because it says nothing about
    the training, and each line of a cloud's log costs money."""

    processor: float
    network: int
    complaint: re.Pattern[bytes] | None = None
    once: bool = False

    def times(self, processes: int) -> Noise:
        return Noise(self.processor * processes, self.network * processes, self.complaint, self.once)


# A rank that hangs in gloo or TensorFlow uses 0.4 % of a core, and 3 kB/s with the launcher's requests to the bucket.
_QUIET = Noise(0.05, 64 * 1024)
# Some builds of PyTorch print this on every rank of every run, before it has met the others.
_TORCH = Noise(
    _QUIET.processor, _QUIET.network, re.compile(rb"hostname of the client socket cannot be retrieved\. err=-3")
)
NOISE = {
    **dict.fromkeys(("pytorch", "torchrun", "accelerate", "lightning"), _TORCH),
    # Horovod's ranks poll for what to reduce even while they hang. That takes a whole core, 43 % of it outside the
    # kernel, and 360 kB/s. Rank 0 prints warnings.
    "horovod": Noise(0.75, 1024 * 1024, re.compile(rb"stall_inspector\.cc:|^Missing ranks:$|^\d+: \[")),
    # Ray Train asks Ray's dashboard every second whether its controller lives. The dashboard is off, and no setting of
    # Ray 2.60 stops the question.
    "ray": Noise(
        _QUIET.processor, _QUIET.network, re.compile(rb"Failed to query Ray Train Controller actor state"), once=True
    ),
}
GPU_PERCENT = 5
DISK_BYTES_PER_SECOND = 64 * 1024
_TICKS = os.sysconf("SC_CLK_TCK")
LOOPBACK = "lo"

# A counter for each process, by its id and its start time, because ids are reused.
Counts = Mapping[Tuple[int, str], int]


@dataclass(frozen=True)
class Reading:
    """Counters at one moment. `gpu` is the busiest GPU's percentage; None if no GPU can be read."""

    output: int
    progress: tuple[int, int]
    ticks: Counts
    network: int
    disk: Counts
    gpu: int | None = None


def noise_of(framework: str, processes: int) -> Noise:
    """The noise of all processes of a node together."""
    return NOISE.get(framework, _QUIET).times(processes)


def active_resources(before: Reading, after: Reading, seconds: float, noise: Noise) -> tuple[str, ...]:
    """The resources that the node used between two readings, by name; empty if it was idle."""
    used_names = {
        "output": after.output != before.output,
        "progress": after.progress != before.progress,
        "processor": total_increase(before.ticks, after.ticks) / _TICKS >= noise.processor * seconds,
        "disk": total_increase(before.disk, after.disk) >= DISK_BYTES_PER_SECOND * seconds,
        "network": after.network - before.network >= noise.network * seconds,
        "GPU": (after.gpu or 0) >= GPU_PERCENT,
    }
    return tuple(name for name, active in used_names.items() if active)


def total_increase(before: Counts, after: Counts) -> int:
    """The sum of the increases. When a parent has waited for a process, its own count includes that of the process."""
    return sum(max(0, count - before.get(process, 0)) for process, count in after.items())


@dataclass
class Meter:
    """Takes readings of this node. `output` says how many bytes the processes have written."""

    output: Callable[[], int]
    progress_file: str
    proc: Path = Path("/proc")
    own_network: bool = True
    _gpus: Gpus = field(default_factory=Gpus)

    def read(self) -> Reading:
        network = network_bytes(self.proc) if self.own_network else 0
        below = read_descendants(self.proc, os.getpid())
        # Computing happens outside the kernel; polling spends half of its time inside it.
        ticks = {process: int(fields[11]) + int(fields[13]) for process, fields in below.items()}
        disk = {process: disk_bytes(self.proc, process[0]) for process in below}
        return Reading(self.output(), _size_and_mtime(self.progress_file), ticks, network, disk, self._gpus.busiest())

    @property
    def measures(self) -> str:
        """The measured resources, for messages."""
        names = ["output", "progress", "processor", "disk"]
        names += ["GPU"] if self._gpus.readable else []
        names += ["network"] if self.own_network else []
        return f"{', '.join(names[:-1])} or {names[-1]} use"


def _size_and_mtime(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def network_bytes(proc: Path) -> int:
    """Bytes received and sent by every interface but loopback, in this node's own network namespace."""
    total = 0
    with suppress(OSError, ValueError, IndexError):
        for line in (proc / "self/net/dev").read_text().splitlines()[2:]:
            name, _, counters = line.partition(":")
            if name.strip() != LOOPBACK:
                fields = counters.split()
                total += int(fields[0]) + int(fields[8])
    return total


def disk_bytes(proc: Path, pid: int) -> int:
    """The bytes that a process has read from disks and written to them; 0 if this program may not read that."""
    with suppress(OSError, ValueError):
        rows = dict(line.split(": ") for line in (proc / str(pid) / "io").read_text().splitlines())
        return int(rows.get("read_bytes", 0)) + int(rows.get("write_bytes", 0))
    return 0


def read_descendants(proc: Path, root: int) -> dict[tuple[int, str], list[str]]:
    """The fields of `stat`, after the name, of every process below `root`."""
    rows: dict[int, list[str]] = {}
    children: dict[int, list[int]] = {}
    for folder in proc.iterdir():
        if folder.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                # The name is in brackets and may contain any character.
                fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(folder.name))
                rows[int(folder.name)] = fields
    found, left = {}, list(children.get(root, ()))
    while left:
        pid = left.pop()
        left += children.get(pid, ())
        found[pid, rows[pid][19]] = rows[pid]
    return found
