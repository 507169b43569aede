# SPDX-License-Identifier: Apache-2.0
"""The specification for a node's supervisor: the command, the namespaces, the visible files, and the limits."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localcloud.hosts import limits, node_setup, users
from localcloud.hosts.assignment import Assignment, CannotStartError
from localcloud.hosts.limits import ControlGroups
from localcloud.hosts.node_setup import NodeSetup

FOLDER = "mounts"
log = logging.getLogger("localcloud")
GRACE_SECONDS = 10.0
# An empty folder on which each node mounts its own root.
_ROOT = "root"
# A launcher keeps data ports in their range by a library, or without the library by the kernel's port range. With fewer
# ports than this, outgoing connections could fail; the launcher has the same limit.
_LIBRARY, _FEWEST_PORTS = "TRAINYARD_PIN_LIBRARY", 32


@dataclass(frozen=True)
class Mount:
    """A folder, and the path where the run's nodes see it."""

    source: Path
    target: str
    writable: bool = False


async def prepare_mounts(assignment: Assignment) -> list[Mount]:
    """Makes and fills the folders of a run, and gives its user access to shared ones."""
    made = []
    for shared in assignment.shared:
        try:
            await asyncio.to_thread(users.hand_over, shared.folder, users.run_user(assignment.user or assignment.id))
        except (NotADirectoryError, FileNotFoundError):
            reason = f"{shared.folder.name!a} is not a folder, so it cannot be shown at {shared.target!a}"
            raise CannotStartError(reason) from None
        made.append(Mount(shared.folder, shared.target, not shared.read_only))
    for number, mounted in enumerate(assignment.mounts):
        folder = assignment.folder / FOLDER / str(number)
        await asyncio.to_thread(_fill_mounted_folder, folder, mounted.files)
        made.append(Mount(folder, mounted.target))
    return made


def _fill_mounted_folder(folder: Path, files: Iterable[tuple[str, Path]]) -> None:
    folder.mkdir(parents=True)
    left_out = [name for name, file in files if not _link_object(folder, name, file)]
    for place, _, _ in os.walk(folder):
        os.chmod(place, 0o755)  # for the run's user; the folder above keeps others out
    if left_out:
        log.warning(
            "%d objects are not mounted, because no file can have their names, such as %r", len(left_out), left_out[0]
        )


def _link_object(folder: Path, name: str, file: Path) -> bool:
    """Adds an object. Returns False if its name is not a valid path, or is that of a folder."""
    parts = name.rstrip("/").split("/")
    if any(part in ("", ".", "..") for part in parts):
        return not name
    path = folder.joinpath(*parts)
    try:
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            os.link(file, path)
            path.chmod(0o644)
    except (OSError, ValueError):
        return False
    return True


def build_specification(
    assignment: Assignment,
    node: NodeSetup,
    nodes: int,
    mounted: Sequence[Mount],
    seconds: float,
    groups: ControlGroups | None,
) -> dict[str, Any]:
    spec = {
        "parent": os.getpid(),
        "command": node.command,
        "folder": str(node.folder),
        "environment": dict(node.environment),
        "seconds": seconds,
        "grace": GRACE_SECONDS,
        "result": str(result_path(assignment.folder, node.rank)),
        "reports": node.reports,
    }
    if node.place.entry is None:
        if mounted:
            raise CannotStartError(
                f"{mounted[0].target} cannot be mounted on this machine: docs/local-cloud.md says what mounts need"
            )
        if assignment.small_disk:
            raise CannotStartError(
                "A small disk cannot be made on this machine: docs/local-cloud.md says what it needs"
            )
        return spec
    place = {"user": node.place.entry.user, "network": node.place.entry.network}
    # The first user id of the node, and how many it has.
    if node.machine:
        user, count = users.machine_users(assignment.id) or (None, 1)
    else:
        user, count = users.run_user(assignment.user or assignment.id), 1
    root = assignment.folder / _ROOT
    root.mkdir(exist_ok=True)
    for folder, _ in node.own:
        users.hand_over(Path(folder), user)
    if user is not None and (closed := users.find_unreadable(source for source, _ in node.shown)):
        raise CannotStartError(f"The run's user may not read {closed}. Allow it: chmod -R go+rX {closed}")
    name = f"{assignment.id[-12:]}-{node.rank}"
    return {
        **spec,
        "namespaces": place,
        "sandbox": {
            "root": str(root),
            "user": user,
            "users": count,
            "machine": node.machine,
            "filtered": node.place.filtered,
            "hostname": node_setup.host_name(assignment.name, node.rank),
            "shown": node.shown,
            "own": node.own,
            "small_disk": assignment.small_disk,
            "folders": [(str(mount.source), mount.target, mount.writable) for mount in mounted],
            "printed": str(output_path(assignment.folder, node.rank)),
            "ports": _kernel_port_range(node.environment),
            "limits": limits.node_limits(node.memory, node.disk, nodes, assignment.folder),
            "groups": groups.child(name).folders if groups else {},
            "version": groups.version if groups else 0,
        },
    }


def _kernel_port_range(environment: Mapping[str, str]) -> tuple[int, int] | None:
    """The range from which the kernel chooses a node's ports, by its launch document. None: it is not set."""
    # Nodes on loopback share one network, so the range of one node would apply to all.
    if environment.get(_LIBRARY) or "TRAINYARD_NODE_ADDRESS" in environment:
        return None
    try:
        rows = json.loads(environment["TRAINYARD_LAUNCH"])["ports"].values()
        pair = next(row["range"] for row in rows if row["listens"] and row["pinned"] == "kernel-range")
        first, last = (int(number) for number in pair)
    except (KeyError, ValueError, TypeError, AttributeError, StopIteration, OverflowError, RecursionError):
        return None  # no launch document: no launcher either
    return (first, last) if 0 < first <= last < 1 << 16 and last - first + 1 >= _FEWEST_PORTS else None


def output_path(folder: Path, rank: int) -> Path:
    return folder / f"node-{rank}.log"


def result_path(folder: Path, rank: int) -> Path:
    return folder / f"node-{rank}.result"
