# SPDX-License-Identifier: Apache-2.0
"""Prepares the nodes of a run: their folders, commands and variables. Cleans up after nodes that have ended."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localcloud import files
from localcloud.environments.find import MissingEnvironment
from localcloud.hosts import folders, images, limits, unpacking
from localcloud.hosts.assignment import Assignment, CannotStartError, NodeWork, RunCode, WholeMachine
from localcloud.hosts.fabric import NodePlace
from localcloud.hosts.images import NodePaths, Shown

# The folder of the files that a run gets, read-only for its nodes, and the file in it that lists the nodes.
GIVEN = "given"
METADATA = "cluster-nodes.json"
# The launcher's limit for files of the working directory (launcher/stray_files.py): a quarter of the free disk.
_KEEP_VARIABLE, _PARTS_OF_DISK = "TRAINYARD_KEEP_MEGABYTES", 4
# The files for a node that unpacks an archive: the program, and the archive.
_UNPACKING, _ARTIFACT = "unpacking.py", "artifact"
# The folder of the run's own files of `/etc`.
SETTINGS = "etc"
# The folder of settings on the disk of a whole machine.
_ETC = "etc"
_LOCALHOST = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
_TURN_SECONDS = 0.05
Results = dict[int, dict[str, Any]]


@dataclass(frozen=True)
class NodeSetup:
    """A node to start. `folder`: its working directory, as the node sees it. `own`: the folders that it may write to.
    `shown`: the files of this machine that it sees besides the system. Both have the real path first."""

    rank: int
    group: str
    command: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    place: NodePlace
    own: tuple[Shown, ...]
    shown: tuple[Shown, ...]
    memory: int
    disk: int
    machine: bool = False
    # The variable with the open file to which its command writes why it does not start. Empty: it has none.
    reports: str = ""


def prepare_nodes(assignment: Assignment, places: Sequence[NodePlace]) -> list[NodeSetup]:
    """Makes the nodes' folders and puts their code there. Returns the nodes, by rank."""
    # Files below may be readable for all, because of the run's user. So this folder keeps others out.
    assignment.folder.chmod(0o700)
    (assignment.folder / GIVEN).mkdir(exist_ok=True)
    (assignment.folder / GIVEN).chmod(0o755)
    nodes = [_set_up_node(assignment, rank, place, len(places)) for rank, place in enumerate(places)]
    write_node_list(assignment.folder, [])
    (assignment.folder / SETTINGS).mkdir(exist_ok=True)
    hosts = "".join(f"{node.place.address} {host_name(assignment.name, node.rank)}\n" for node in nodes)
    for name, content in {**images.FILES, "hosts": _LOCALHOST + hosts}.items():
        _write_whole(assignment.folder / SETTINGS / name, content)
    return nodes


def remove_disks(folder: Path) -> None:
    """Removes the disks of a run's nodes, but not their output, results and evidence."""
    for disk in (*folder.glob("node-*/"), folder / "mounts"):
        shutil.rmtree(disk, ignore_errors=True)


def write_node_list(folder: Path, nodes: Sequence[NodeSetup]) -> None:
    """Writes the list of the nodes that have started so far, for all nodes of the run."""
    listed = [{"Rank": node.rank, "IPAddress": node.place.address} for node in nodes]
    _write_whole(folder / GIVEN / METADATA, json.dumps(listed))


def host_name(run: str, rank: int) -> str:
    """A valid host name from the run's name, which may have any characters."""
    words = re.sub(r"[^a-z0-9]+", "-", run.lower()).strip("-")[:40].rstrip("-")
    return f"{words or 'run'}-{rank}"


def _write_whole(path: Path, content: str) -> None:
    draft = path.with_name(f"{path.name}.new")
    draft.write_text(content)
    draft.chmod(0o644)
    draft.replace(path)


def _set_up_node(assignment: Assignment, rank: int, place: NodePlace, count: int) -> NodeSetup:
    folder, temporary = assignment.folder / f"node-{rank}", assignment.folder / f"node-{rank}.tmp"
    for each in (folder, temporary):
        each.mkdir(parents=True, exist_ok=True)
    given = assignment.folder / GIVEN
    seen = NodePaths() if place.entry else NodePaths(str(folder), str(temporary), str(given), images.project_folder())
    work = assignment.works[rank]
    environment = images.environment_for(work.stands_in)
    if isinstance(environment, MissingEnvironment):
        raise CannotStartError(
            f"The image {work.image} needs the local environment {environment.name}: {environment.reason}."
            f" {environment.remedy}".strip()
        )
    if work.machine:
        return _set_up_machine(assignment, rank, place, work, work.machine, environment)
    python = f"python-{rank}"
    images.write_python(given / python, environment.interpreter, environment.layout, seen.project)
    base = images.base_variables(environment, seen, f"{seen.given}/{python}/bin")
    # The launcher's limit for kept files: storage costs nothing here, but it is on this machine's disk.
    own = {
        **place.variables,
        _KEEP_VARIABLE: str(shutil.disk_usage(assignment.folder).free // _PARTS_OF_DISK // 1_000_000),
    }
    variables = {**base, **own, **work.environment(place.endpoints, seen.given)}
    code, reports = _copy_code(assignment.code, folder), ""
    if assignment.code and code is None:
        most = limits.node_limits(work.memory, work.disk, count, assignment.folder)
        task_file = _give_archive(assignment.code, work, rank, given, seen, most)
        command: tuple[str, ...] = (
            f"{seen.given}/{python}/bin/python",
            "-I",
            "-S",
            f"{seen.given}/{_UNPACKING}",
            task_file,
        )
        reports = unpacking.REPORT
    else:
        command = _code_command(work, code, folder, seen.home) + work.arguments
    return NodeSetup(
        rank, assignment.outline.groups_by_rank[rank], command,
        _path_in_node(code.parent if code else folder, folder, seen.home), variables, place,
        ((str(folder), images.HOME), (str(temporary), images.TEMPORARY)),
        (
            (str(given), images.GIVEN),
            *((str(assignment.folder / SETTINGS / name), f"/etc/{name}") for name in (*images.FILES, "hosts")),
            images.shown_launcher(), *images.shown_programs(environment.layout, base),
        ),
        work.memory, work.disk, reports=reports,
    )  # fmt: skip


def _set_up_machine(
    assignment: Assignment, rank: int, place: NodePlace, work: NodeWork, machine: WholeMachine,
    environment: images.LocalEnvironment,
) -> NodeSetup:  # fmt: skip
    """A node that is a whole machine: some of its folders are on a disk that it keeps for its next start."""
    disk = assignment.folder / f"node-{rank}"
    own = [(disk / name.strip("/"), name) for name in (*machine.kept, *machine.fresh)]
    for name in machine.fresh:
        shutil.rmtree(disk / name.strip("/"), ignore_errors=True)

    # Files are only written at the first start: later, a link that the machine made could be in their place.
    first = not disk.joinpath(_ETC).exists()
    for folder, _ in own:
        folder.mkdir(parents=True, exist_ok=True)
    if first:
        folders.copy_settings(disk / _ETC)
        # A cloud's own resolver knows a machine by its name: gloo crashes where it cannot look that up.
        own_name = f"{place.address} {host_name(assignment.name, rank)}\n"
        for name, content in {**machine.files, "hosts": _LOCALHOST + own_name}.items():
            path = disk / _ETC / name
            path.parent.mkdir(exist_ok=True)
            _write_whole(path, content)
    seen = NodePaths(home="/root") if place.entry else NodePaths(str(disk / "root"), str(disk / "tmp"))
    base = images.base_variables(environment, seen)
    given = (str(assignment.folder / GIVEN), machine.given)
    return NodeSetup(
        rank, assignment.outline.groups_by_rank[rank], work.command + work.arguments, Path("/"),
        {**base, **place.variables, **work.environment(place.endpoints, seen.given)}, place,
        tuple((str(folder), name) for folder, name in own),
        (given, *machine.shown, *images.shown_programs(environment.layout, base)), work.memory, work.disk, machine=True,
    )  # fmt: skip


def _path_in_node(path: Path, folder: Path, home: str) -> Path:
    """A path in a node's folder, as the node sees it."""
    return Path(home, path.relative_to(folder))


def _copy_code(code: RunCode | None, folder: Path) -> Path | None:
    """Copies an artifact that is a file into a node's folder. Archives are unpacked by the node itself."""
    if code is None or _is_code_archive(code):
        return None
    target = folder / code.folder
    target.mkdir(exist_ok=True)
    file = target / _code_file_name(code)
    try:
        shutil.copyfile(code.file, file)
    except OSError as error:
        raise CannotStartError(f"The artifact cannot be copied: {error}") from None
    return file


def _is_code_archive(code: RunCode) -> bool:
    try:
        return unpacking.is_archive(code.file)
    except OSError as error:
        raise CannotStartError(f"The artifact cannot be read: {error}") from None


def _code_file_name(code: RunCode) -> str:
    return Path(code.name).name or "artifact.py"


def _code_command(work: NodeWork, code: Path | None, folder: Path, home: str) -> tuple[str, ...]:
    """The command of a node whose code is a file, if it has code."""
    if work.command:
        return work.command
    if code is None:
        raise CannotStartError("The job has neither a container image nor an artifact: give it one of them")
    return ("bash" if code.suffix == ".sh" else "python", str(_path_in_node(code, folder, home)))


def _give_archive(
    code: RunCode, work: NodeWork, rank: int, given: Path, seen: NodePaths, most: Mapping[str, int]
) -> str:
    """Gives the nodes the archive, and this node a file with its task. Returns the path at which the node sees it."""
    if rank == 0:
        _write_whole(given / _UNPACKING, Path(unpacking.__file__).read_text("utf-8"))
        (given / _ARTIFACT).unlink(missing_ok=True)
        try:
            os.link(code.file, given / _ARTIFACT)  # a link, because the archive may be large
        except OSError:
            shutil.copyfile(code.file, given / _ARTIFACT)
        (given / _ARTIFACT).chmod(0o644)
    task = {
        "archive": f"{seen.given}/{_ARTIFACT}", "name": _code_file_name(code), "target": f"{seen.home}/{code.folder}",
        "setting": code.entry, "entry": work.script, "command": work.command, "arguments": work.arguments,
        "bytes": most["disk"], "files": most["inodes"],
    }  # fmt: skip
    _write_whole(given / f"unpacking-{rank}.json", json.dumps(task))
    return f"{seen.given}/unpacking-{rank}.json"


async def end_processes(folder: Path) -> Results:
    """Ends a run's remaining processes. Returns by rank the results of nodes that had ended by themselves."""
    for pid, started in _recorded_supervisors(folder):
        if files.is_same_process(pid, started):
            os.kill(pid, signal.SIGTERM)
    # A supervisor gives its command some time to end, and then ends in any case.
    while any(files.is_same_process(pid, started) for pid, started in _recorded_supervisors(folder)):
        await asyncio.sleep(_TURN_SECONDS)
    results = {
        int(path.stem.removeprefix("node-")): json.loads(path.read_text()) for path in folder.glob("node-*.result")
    }
    # A stopped node ended because of the cloud's end.
    return {rank: result for rank, result in results.items() if result["reason"] != "stopped"}


def _recorded_supervisors(folder: Path) -> Iterator[tuple[int, str]]:
    for path in folder.glob("node-*.pid"):
        if identity := json.loads(path.read_text() or "{}"):
            yield identity["pid"], identity["started"]
