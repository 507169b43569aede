# SPDX-License-Identifier: Apache-2.0
"""Tests what a node has before training starts: its own folder, devices, disk, shared memory and clock."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from launcher.expects import PlannedNode

_GIB, _MIB, _GB = 1 << 30, 1 << 20, 10**9
_LEAST_DISK = 1 * _GIB
# Docker's default, with which loaders of several processes fail sooner or later.
_SMALL_SHARED_MEMORY = 64 << 20
_SKEW_SECONDS = 30.0
# A system and its file systems take a part of a disk.
_LEAST_SHARE = 0.5
_CONTENT = b"trainyard"


def folder_problem(root: Path) -> str:
    """Why the node's own folder cannot be used; empty if it can."""
    file = root / "preflight"
    try:
        file.write_bytes(_CONTENT)
        intact = file.read_bytes() == _CONTENT
        file.unlink()
    except OSError as error:
        return f"its own folder {root} cannot be written: {error.strerror}"
    return "" if intact else f"its own folder {root} does not keep what is written"


def find_shortages(
    root: Path, clock_ahead: float | None, planned: PlannedNode, shared: str = "/dev/shm"
) -> Iterator[str]:
    """What training may lack, in words. `clock_ahead`: seconds that the store's clock is ahead; None: not known."""
    with suppress(OSError):
        disk = shutil.disk_usage(root)
        if disk.free < _LEAST_DISK:
            yield f"only {disk.free / _GIB:.1f} GiB of disk are free at {root}"
        if disk.total < planned.disk_gb * _GB * _LEAST_SHARE:
            yield f"the disk at {root} has {disk.total / _GB:.0f} GB in all, and {planned.disk_gb:g} GB are planned"
    with suppress(OSError):
        status = os.statvfs(shared)
        size = status.f_frsize * status.f_blocks
        if size < planned.shm_mb * _MIB * _LEAST_SHARE:
            yield f"{shared} has {size // _MIB} MiB, and {planned.shm_mb:g} are planned"
        elif 0 < size <= _SMALL_SHARED_MEMORY:
            yield f"{shared} has only {size // _MIB} MiB, which loaders of several processes may fill"
    if clock_ahead is not None and abs(clock_ahead) > _SKEW_SECONDS:
        yield f"this node's clock is {abs(clock_ahead):.0f} s {'behind' if clock_ahead > 0 else 'ahead of'} the store's"
