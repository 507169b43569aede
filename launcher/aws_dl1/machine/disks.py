# SPDX-License-Identifier: Apache-2.0
"""Uses the machine's own NVMe disks for docker's folder and scratch space: they are much faster than the root volume.

They are empty after each stop of the instance. A disk with a file system, a partition or a mount is never touched.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.aws_dl1.machine.commands import CommandError, run_program
from launcher.aws_dl1.machine.facts import MachinePaths
from launcher.printing import LinePrinter

# The model name of these disks. Those of Elastic Block Store have another one.
_MODEL = "Amazon EC2 NVMe Instance Storage"
_LABEL, _ARRAY = "trainyard", "/dev/md/trainyard"
_COLUMNS = "NAME,TYPE,MODEL,FSTYPE,LABEL,MOUNTPOINT"
_DOCKER = Path("/var/lib/docker")
_WHOLE_MACHINE = ["0", "0", "4294967295"]
_MAKE_SECONDS = 600.0


@dataclass(frozen=True)
class Disks:
    """`made`: the device that this program made at an earlier boot. `mounted`: whether that device is mounted. `idle`:
    unused disks."""

    made: str
    mounted: bool
    idle: tuple[str, ...]


def prepare_disks(paths: MachinePaths, say: LinePrinter) -> None:
    """Prepares the disks. A machine without such disks, or where this fails, trains on its root volume."""
    if not _owns_the_machine(paths):
        return
    try:
        disks = parse_disks(run_program(["lsblk", "--json", f"--output={_COLUMNS}"]))
        if not disks.mounted:
            device = disks.made or make_file_system(disks.idle)
            if not device:
                return
            mount_device(device, paths.scratch)
            say(f"local disk {device} is {paths.scratch}")
        _move_docker(paths.scratch / "docker", say)
    except (CommandError, OSError, ValueError) as error:
        say(f"the local disks are not used: {error}")


def _owns_the_machine(paths: MachinePaths) -> bool:
    """False in tests, and if a user namespace stands in for the machine: there the disks belong to the host."""
    with suppress(OSError):
        return str(paths.root) == "/" and Path("/proc/self/uid_map").read_text().split() == _WHOLE_MACHINE
    return False


def parse_disks(text: str) -> Disks:
    """Reads the output of `lsblk`."""
    rows = json.loads(text)["blockdevices"]
    made = [row for row in _every_device(rows) if row.get("label") == _LABEL]
    idle = [f"/dev/{row['name']}" for row in rows if _is_idle_disk(row)]
    # The members of an array are listed beside the array itself. Only the array has the label.
    return Disks(
        f"/dev/{made[0]['name']}" if made else "", any(row.get("mountpoint") for row in made), tuple(sorted(idle))
    )


def _every_device(rows: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for row in rows:
        yield row
        yield from _every_device(row.get("children") or ())


def _is_idle_disk(row: Mapping[str, Any]) -> bool:
    used = row.get("fstype") or row.get("mountpoint") or row.get("children")
    return row.get("type") == "disk" and (row.get("model") or "").strip() == _MODEL and not used


def make_file_system(devices: Sequence[str]) -> str:
    """Makes a file system and returns its device; empty if no disk is blank. mdadm, if there, joins several disks."""
    # lsblk reads the database of udev. wipefs reads the disk itself, and finds partition tables, too.
    blank = [device for device in devices if not run_program(["wipefs", "--noheadings", device]).strip()]
    if not blank:
        return ""
    device = blank[0]
    if len(blank) > 1 and _has_mdadm():
        run_program(["mdadm", "--create", _ARRAY, "--run", "--level=0", f"--raid-devices={len(blank)}", *blank])
        device = _ARRAY
    run_program(["mkfs.ext4", "-q", "-F", "-m", "0", "-L", _LABEL, "-E", "nodiscard", device], _MAKE_SECONDS)
    return device


def mount_device(device: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    run_program(["mount", "-o", "noatime", device, str(folder)])


def _has_mdadm() -> bool:
    try:
        run_program(["mdadm", "--version"])
    except CommandError:
        return False
    return True


def _move_docker(folder: Path, say: LinePrinter) -> None:
    """Moves docker's folder by a mount, which ends with this boot: after a stop the disks are empty, and docker uses
    its own folder again."""
    if os.path.ismount(_DOCKER) or run_program(["docker", "info", "--format={{.DockerRootDir}}"]).strip() != str(
        _DOCKER
    ):
        return
    if (
        run_program(["docker", "ps", "--all", "--quiet"]).strip()
        or run_program(["docker", "images", "--quiet"]).strip()
    ):
        say(f"docker stays in {_DOCKER}: it has images already")
        return
    folder.mkdir(mode=0o710, parents=True, exist_ok=True)
    with suppress(CommandError):
        # The socket would start docker again.
        run_program(["systemctl", "stop", "docker.socket"])
    run_program(["systemctl", "stop", "docker.service"])
    try:
        run_program(["mount", "--bind", str(folder), str(_DOCKER)])
        say(f"docker keeps images and containers on the local disk, {folder}")
    finally:
        with suppress(CommandError):
            run_program(["systemctl", "start", "docker.socket"])
        run_program(["systemctl", "start", "docker.service"])
