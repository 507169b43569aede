# SPDX-License-Identifier: Apache-2.0
"""Finds and removes the environments of this machine that nothing uses: of other releases, incomplete, or all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from localcloud.environments import cache
from localcloud.environments.environment_rows import environment_rows
from localcloud.environments.find import (
    LAYER,
    UNPACKED,
    Environment,
    MissingEnvironment,
    find_environment,
    layer_folder,
    locate_environment,
)


@dataclass(frozen=True)
class Prunable:
    """A folder that can be removed, and why. `size` in bytes."""

    folder: Path
    reason: str
    size: int


def find_prunable(every: bool) -> list[Prunable]:
    """The folders that this release does not use; with `every`, also those that it would use."""
    current = dict(_folders_in_use())
    found = []
    for folder in sorted(cache.environments_cache().glob("*-*")):
        name = folder.name.rpartition("-")[0].partition(LAYER)[0]
        if folder.name.startswith(".") or not folder.is_dir():
            continue
        if name not in environment_rows() and not (folder / cache.STAMP).is_file():
            continue  # neither of a row, nor with the file that completes an environment
        if folder not in current:
            found.append(Prunable(folder, "another release made it, or it is not complete", _disk_space(folder)))
        elif every:
            found.append(Prunable(folder, f"the environment `{current[folder]}`", _disk_space(folder)))
    return found


def _folders_in_use() -> Iterator[tuple[Path, str]]:
    """The complete folders that this release uses, with the names of their environments."""
    bases: list[Environment] = []
    for row in environment_rows().values():
        place = None if row.kind == "this" else locate_environment(row)
        if place is not None and not isinstance(place, MissingEnvironment) and cache.read_stamp(place[0]) is not None:
            yield place[0], row.name
        if isinstance(environment := find_environment(row.name), Environment):
            bases.append(environment)
    for base in bases:
        for folder in cache.environments_cache().glob(f"{base.name}{LAYER}*-*"):
            digest = folder.name.rpartition("-")[0].partition(LAYER)[2]
            if folder == layer_folder(base, digest) and cache.read_stamp(folder, UNPACKED) is not None:
                yield folder, f"{base.name}{LAYER}{digest}"


def _disk_space(folder: Path) -> int:
    """The disk space of a folder. A file with several names counts once."""
    seen = set()
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            status = os.lstat(os.path.join(place, name))
            if status.st_ino not in seen and stat.S_ISREG(status.st_mode):
                seen.add(status.st_ino)
                total += status.st_blocks * 512
    return total
