# SPDX-License-Identifier: Apache-2.0
"""Prepares each node of a run: its folder, its command and its environment."""

from __future__ import annotations

import json
import os
import re
import shutil
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localcloud.environments.find import MissingEnvironment
from localcloud.hosts import image_python, images, inside, rootfs, shown, unpacking
from localcloud.hosts.assignment import Assignment, CannotStartError, NodeWork, RunCode, WholeMachine
from localcloud.hosts.fabric import NodePlace
from localcloud.hosts.images import NodePaths
from localcloud.hosts.shown import Shown

# The folder of the files that a run gets, read-only for its nodes, and the file in it that lists the nodes.
GIVEN = "given"
METADATA = "cluster-nodes.json"
# How much of its working directory a node keeps unasked (launcher/leavings.py): such a part of the free disk.
_KEEP_VARIABLE, _PARTS_OF_DISK = "TRAINYARD_KEEP_MEGABYTES", 4
# The folder of the run's own files of `/etc`.
SETTINGS = "etc"
# The folder of settings on the disk of a whole machine.
_ETC = "etc"


@dataclass(frozen=True)
class NodeSetup:
    """One process to start. `folder` is its working folder, as the node sees it. `own` are the folders it may write to,
    and `shown` the files of this machine that it sees besides the system: each with its real path first."""

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


def prepare(assignment: Assignment, places: Sequence[NodePlace]) -> list[NodeSetup]:
    """Makes the nodes' folders and unpacks their code. Returns the nodes, by rank."""
    # Files below may be open to all, for the run's user. So nobody else may enter this folder.
    assignment.folder.chmod(0o700)
    (assignment.folder / GIVEN).mkdir(exist_ok=True)
    (assignment.folder / GIVEN).chmod(0o755)
    nodes = [_node(assignment, rank, place) for rank, place in enumerate(places)]
    announce(assignment.folder, [])
    (assignment.folder / SETTINGS).mkdir(exist_ok=True)
    for name, content in {**inside.FILES, "hosts": "".join(_hosts(assignment.name, nodes))}.items():
        _write_whole(assignment.folder / SETTINGS / name, content)
    return nodes


def remove(folder: Path) -> None:
    """Removes the disks of a run's nodes. Their output, their results and the evidence stay."""
    for disk in (*folder.glob("node-*/"), folder / "mounts"):
        shutil.rmtree(disk, ignore_errors=True)


def announce(folder: Path, nodes: Sequence[NodeSetup]) -> None:
    """Writes the list of the nodes that have started so far, for all nodes of the run."""
    there = [{"Rank": node.rank, "IPAddress": node.place.address} for node in nodes]
    _write_whole(folder / GIVEN / METADATA, json.dumps(there))


def host_name(run: str, rank: int) -> str:
    """A valid host name, made from the run's name, which may hold any characters."""
    words = re.sub(r"[^a-z0-9]+", "-", run.lower()).strip("-")[:40].rstrip("-")
    return f"{words or 'run'}-{rank}"


def _localhost() -> Iterator[str]:
    yield "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"


def _hosts(run: str, nodes: Sequence[NodeSetup]) -> Iterator[str]:
    yield from _localhost()
    yield from (f"{node.place.address} {host_name(run, node.rank)}\n" for node in nodes)


def _write_whole(path: Path, content: str) -> None:
    draft = path.with_name(f"{path.name}.new")
    draft.write_text(content)
    draft.chmod(0o644)
    draft.replace(path)


def _node(assignment: Assignment, rank: int, place: NodePlace) -> NodeSetup:
    folder, temporary = assignment.folder / f"node-{rank}", assignment.folder / f"node-{rank}.tmp"
    for each in (folder, temporary):
        each.mkdir(parents=True, exist_ok=True)
    given = assignment.folder / GIVEN
    seen = NodePaths() if place.entry else NodePaths(str(folder), str(temporary), str(given), shown.project())
    work = assignment.works[rank]
    environment = _environment(work)
    if work.machine:
        return _machine(assignment, rank, place, work, work.machine, environment)
    python = f"python-{rank}"
    image_python.write(given / python, environment.interpreter, seen.project)
    base = images.base_variables(environment, seen, f"{seen.given}/{python}/bin")
    own = {**place.variables, _KEEP_VARIABLE: str(_megabytes_to_keep(assignment.folder))}
    variables = {**base, **own, **work.environment(place.endpoints, seen.given)}
    code = _unpacked(assignment.code, folder)
    command = work.command or _code_command(assignment.code, code, work.script, folder, seen.home)
    start_in = code.parent if code and code.is_file() else code or folder
    return NodeSetup(
        rank, assignment.outline.placed[rank], command + work.arguments, _as_seen(start_in, folder, seen.home),
        variables, place,
        ((str(folder), inside.HOME), (str(temporary), inside.TEMPORARY)),
        (*_settings(assignment.folder), shown.launcher(), *shown.programs(environment.interpreter, base)),
        work.memory, work.disk,
    )  # fmt: skip


def _machine(
    assignment: Assignment, rank: int, place: NodePlace, work: NodeWork, machine: WholeMachine,
    environment: images.LocalEnvironment,
) -> NodeSetup:  # fmt: skip
    """A whole machine: its disk is some folders of the system, which it finds again when it starts the next time."""
    disk = assignment.folder / f"node-{rank}"
    own = [(disk / name.strip("/"), name) for name in (*machine.kept, *machine.fresh)]
    for name in machine.fresh:
        shutil.rmtree(disk / name.strip("/"), ignore_errors=True)
    # Only at the first start: later a link of the machine's own could lie where a file is to be written.
    first = not disk.joinpath(_ETC).exists()
    for folder, _ in own:
        folder.mkdir(parents=True, exist_ok=True)
    if first:
        rootfs.copy_settings(disk / _ETC)
        for name, content in {**machine.files, "hosts": "".join(_localhost())}.items():
            path = disk / _ETC / name
            path.parent.mkdir(exist_ok=True)
            _write_whole(path, content)
    seen = NodePaths(home="/root") if place.entry else NodePaths(str(disk / "root"), str(disk / "tmp"))
    base = images.base_variables(environment, seen)
    given = (str(assignment.folder / GIVEN), machine.given)
    return NodeSetup(
        rank, assignment.outline.placed[rank], work.command + work.arguments, Path("/"),
        {**base, **place.variables, **work.environment(place.endpoints, seen.given)}, place,
        tuple((str(folder), name) for folder, name in own),
        (given, *machine.shown, *shown.programs(environment.interpreter, base)), work.memory, work.disk, machine=True,
    )  # fmt: skip


def _megabytes_to_keep(folder: Path) -> int:
    """How much a node keeps unasked. Storage costs nothing here, but its disk is this machine's."""
    return shutil.disk_usage(folder).free // _PARTS_OF_DISK // 1_000_000


def _settings(folder: Path) -> Iterator[Shown]:
    yield str(folder / GIVEN), inside.GIVEN
    for name in (*inside.FILES, "hosts"):
        yield str(folder / SETTINGS / name), f"/etc/{name}"


def _as_seen(path: Path, folder: Path, home: str) -> Path:
    """A path in a node's folder, as the node sees it."""
    return Path(home, path.relative_to(folder))


def _environment(work: NodeWork) -> images.LocalEnvironment:
    """The local environment that stands in for the image. Without an image: this machine's own."""
    environment = images.environment_for(work.stands_in)
    if isinstance(environment, MissingEnvironment):
        raise CannotStartError(
            f"The image {work.image} needs the local environment {environment.name}: {environment.reason}."
            f" {environment.remedy}".strip()
        )
    return environment


def _code_command(owned: RunCode | None, code: Path | None, entry: str, folder: Path, home: str) -> tuple[str, ...]:
    if owned is None or code is None:
        raise CannotStartError("The job has neither a container image nor an artifact: give it one of them")
    script = code
    if code.is_dir():
        if not entry:
            raise CannotStartError(f"{owned.entry} is not set. Set it to the file of the artifact that is to start")
        script = Path(os.path.normpath(code / entry))
        if not script.resolve().is_relative_to(code.resolve()) or not script.is_file():
            raise CannotStartError(f"{owned.entry} {entry!r} is not a file of the artifact")
    return ("bash" if script.suffix == ".sh" else "python", str(_as_seen(script, folder, home)))


def _unpacked(code: RunCode | None, folder: Path) -> Path | None:
    """Copies or unpacks the artifact into a node's folder. Returns the file, or the folder of the archive."""
    if code is None:
        return None
    source = code.file
    target = folder / code.folder
    target.mkdir(exist_ok=True)
    try:
        if zipfile.is_zipfile(source):
            unpacking.unzip(source, target)
        elif tarfile.is_tarfile(source):
            unpacking.untar(source, target)
        else:
            file = target / (Path(code.name).name or "artifact.py")
            shutil.copyfile(source, file)
            return file
    except (OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise CannotStartError(f"The artifact cannot be unpacked: {error}") from None
    return target
