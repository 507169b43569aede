# SPDX-License-Identifier: Apache-2.0
"""What each node of a run executes, where, and with which environment."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localcloud.api import tenancy
from localcloud.api.services import artifacts
from localcloud.api.store import Resource, Store
from localcloud.environments.find import Missing
from localcloud.hosts import images, inside, shown, unpacking
from localcloud.hosts.fabric import Place
from localcloud.hosts.images import Seen
from localcloud.hosts.shown import Shown

# What nodes are given, in a folder that they can only read, and in it the file that says who is there.
GIVEN = "given"
METADATA = "cluster-nodes.json"
# Files of a run's own in the place of the machine's.
SETTINGS = "etc"


class CannotStartError(Exception):
    """Why no process can be started; becomes the run's lifecycleDetails."""


@dataclass(frozen=True)
class Node:
    """One process to start: `folder` is where, as the node sees it, and `own` what it may write to, as it really lies.
    `shown` is what it sees of this machine beside the system."""

    rank: int
    group: str
    command: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    place: Place
    own: tuple[Shown, ...]
    shown: tuple[Shown, ...]
    infrastructure: Mapping[str, Any]


@dataclass(frozen=True)
class Group:
    """Like nodes of a run; a run without node groups is one group of one."""

    name: str
    replicas: int
    minimum_success: int
    configuration: Mapping[str, Any]
    container: Mapping[str, Any]
    infrastructure: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Assignment:
    """Everything of one run that the hosts need to know."""

    run: Resource
    job: Resource
    project: Resource
    folder: Path
    artifact: Path | None
    artifact_name: str
    principal: Mapping[str, str]
    may_pull: Callable[[Resource], bool]
    may_mount: Callable[[Resource], bool]
    may_write_log: Callable[[Resource], bool]


def groups_of(run: Resource, job: Resource) -> list[Group]:
    """The run's groups, with its overrides over its job's settings."""
    configuration = _merged(job.body.get("jobConfigurationDetails"), run.body.get("jobConfigurationOverrideDetails"))
    container = (
        run.body.get("jobEnvironmentConfigurationOverrideDetails")
        or job.body.get("jobEnvironmentConfigurationDetails")
        or {}
    )
    infrastructure = (
        run.body.get("jobInfrastructureConfigurationOverrideDetails")
        or job.body.get("jobInfrastructureConfigurationDetails")
        or {}
    )
    layout = run.body.get("jobNodeConfigurationOverrideDetails") or job.body.get("jobNodeConfigurationDetails") or {}
    listed = layout.get("jobNodeGroupConfigurationDetailsList") or [{"name": ""}]
    groups = []
    for group in listed:
        replicas = group.get("replicas", 1)
        groups.append(
            Group(
                group["name"], replicas, group.get("minimumSuccessReplicas", replicas),
                _merged(configuration, group.get("jobConfigurationDetails")),
                group.get("jobEnvironmentConfigurationDetails") or container,
                group.get("jobInfrastructureConfigurationDetails") or infrastructure,
            )
        )  # fmt: skip
    return groups


def maximum_minutes(run: Resource, job: Resource) -> int:
    layout = run.body.get("jobNodeConfigurationOverrideDetails") or job.body.get("jobNodeConfigurationDetails") or {}
    minutes = layout.get("maximumRuntimeInMinutes")
    return int(minutes or groups_of(run, job)[0].configuration.get("maximumRuntimeInMinutes") or 0)


def prepare(assignment: Assignment, store: Store, places: Sequence[Place]) -> list[Node]:
    """The nodes of a run, their folders made and their code unpacked."""
    groups = [group for group in groups_of(assignment.run, assignment.job) for _ in range(group.replicas)]
    # What lies here may be open to the run's user: nobody else gets through.
    assignment.folder.chmod(0o700)
    (assignment.folder / GIVEN).mkdir(exist_ok=True)
    (assignment.folder / GIVEN).chmod(0o755)
    nodes = [_node(assignment, store, group, rank, places) for rank, group in enumerate(groups)]
    announce(assignment.folder, [])
    (assignment.folder / SETTINGS).mkdir(exist_ok=True)
    for name, content in {**inside.FILES, "hosts": "".join(_hosts(assignment.run, nodes))}.items():
        _write_whole(assignment.folder / SETTINGS / name, content)
    return nodes


def remove(folder: Path) -> None:
    """The disks of a run's nodes go with it: what stays is what they printed, how they ended, and the evidence."""
    for disk in (*folder.glob("node-*/"), folder / "mounts"):
        shutil.rmtree(disk, ignore_errors=True)


def announce(folder: Path, nodes: Sequence[Node]) -> None:
    """Tells the nodes of a cluster who is there so far."""
    there = [{"Rank": node.rank, "IPAddress": node.place.address} for node in nodes]
    _write_whole(folder / GIVEN / METADATA, json.dumps(there))


def host_name(run: Resource, rank: int) -> str:
    """As a host may be called: from the run's name, which may be anything."""
    words = re.sub(r"[^a-z0-9]+", "-", run.name.lower()).strip("-")[:40].rstrip("-")
    return f"{words or 'run'}-{rank}"


def _hosts(run: Resource, nodes: Sequence[Node]) -> Iterator[str]:
    yield "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
    yield from (f"{node.place.address} {host_name(run, node.rank)}\n" for node in nodes)


def _write_whole(path: Path, content: str) -> None:
    draft = path.with_name(f"{path.name}.new")
    draft.write_text(content)
    draft.chmod(0o644)
    draft.replace(path)


def _node(assignment: Assignment, store: Store, group: Group, rank: int, places: Sequence[Place]) -> Node:
    folder, temporary = assignment.folder / f"node-{rank}", assignment.folder / f"node-{rank}.tmp"
    for each in (folder, temporary):
        each.mkdir(parents=True, exist_ok=True)
    given = assignment.folder / GIVEN
    seen = Seen() if places[rank].entry else Seen(str(folder), str(temporary), str(given), shown.project())
    image = str(group.container.get("image", ""))
    environment = _environment(store, image)
    base = images.base_variables(environment, seen)
    variables = {
        **base,
        **places[rank].variables,
        **{name: value.replace(str(given), seen.given) for name, value in assignment.principal.items()},
        **group.configuration.get("environmentVariables", {}),
        **_identities(assignment),
    }
    if len(places) > 1 or group.name:
        count = str(len(places))
        variables |= {"NODE_RANK": str(rank), "NODE_COUNT": count, "INITIAL_CLUSTER_SIZE": count}
        variables["CLUSTER_NODES_METADATA_FILE"] = f"{seen.given}/{METADATA}"
    arguments = tuple(shlex.split(group.configuration.get("commandLineArguments", "")))
    code = _unpacked(assignment, folder)
    if image:
        command = _image_command(assignment, store, group.container, image) + arguments
    else:
        command = _artifact_command(code, variables, folder, seen.home) + arguments
    start_in = code.parent if code and code.is_file() else code or folder
    return Node(
        rank, group.name, command, _as_seen(start_in, folder, seen.home), variables, places[rank],
        ((str(folder), inside.HOME), (str(temporary), inside.TEMPORARY)),
        (*_settings(assignment.folder), shown.launcher(), *shown.programs(environment.interpreter, base)),
        group.infrastructure,
    )  # fmt: skip


def _settings(folder: Path) -> Iterator[Shown]:
    yield str(folder / GIVEN), inside.GIVEN
    for name in (*inside.FILES, "hosts"):
        yield str(folder / SETTINGS / name), f"/etc/{name}"


def _as_seen(path: Path, folder: Path, home: str) -> Path:
    """A path of a node's folder, as the node has it."""
    return Path(home, path.relative_to(folder))


def _environment(store: Store, address: str) -> images.LocalEnvironment:
    """The local environment that an image stands for; without an image, this machine's own."""
    image = artifacts.find_image(store, address) if address else None
    found = images.environment_for(image.body.get("environment", "") if image else "")
    if isinstance(found, Missing):
        raise CannotStartError(
            f"The image {address} stands for the local environment {found.name}: {found.reason}. {found.remedy}".strip()
        )
    return found


def _identities(assignment: Assignment) -> dict[str, str]:
    run, job = assignment.run, assignment.job
    return {
        "TENANCY_OCID": tenancy.TENANCY,
        "PROJECT_OCID": assignment.project.id,
        "PROJECT_COMPARTMENT_OCID": assignment.project.compartment,
        "JOB_OCID": job.id,
        "JOB_COMPARTMENT_OCID": job.compartment,
        "JOB_RUN_OCID": run.id,
        "JOB_RUN_COMPARTMENT_OCID": run.compartment,
    }


def _image_command(assignment: Assignment, store: Store, container: Mapping[str, Any], address: str) -> tuple[str, ...]:
    image = artifacts.find_image(store, address)
    if image is None or not assignment.may_pull(image):
        raise CannotStartError(
            f"The image {address} cannot be pulled: it does not exist in the registry, or the run may not read it"
        )
    digest = container.get("imageDigest")
    if digest and digest != image.body["digest"]:
        raise CannotStartError(f"The image {address} has the digest {image.body['digest']}, not {digest}")
    entrypoint, cmd = container.get("entrypoint") or [], container.get("cmd") or []
    if not entrypoint:
        entrypoint = image.body["entrypoint"] or ([] if cmd else images.DEFAULT_ENTRYPOINT)
        cmd = cmd or image.body["cmd"]
    return (*entrypoint, *cmd)


def _artifact_command(code: Path | None, variables: Mapping[str, str], folder: Path, home: str) -> tuple[str, ...]:
    if code is None:
        raise CannotStartError("The job has neither a container image nor an artifact")
    script = code
    if code.is_dir():
        entrypoint = variables.get("JOB_RUN_ENTRYPOINT", "")
        if not entrypoint:
            raise CannotStartError("JOB_RUN_ENTRYPOINT is not set: it names the file of the artifact to start")
        script = Path(os.path.normpath(code / entrypoint))
        if not script.resolve().is_relative_to(code.resolve()) or not script.is_file():
            raise CannotStartError(f"JOB_RUN_ENTRYPOINT {entrypoint!r} is not a file of the artifact")
    return ("bash" if script.suffix == ".sh" else "python", str(_as_seen(script, folder, home)))


def _unpacked(assignment: Assignment, folder: Path) -> Path | None:
    """The artifact in a node's own folder: the file itself, or the folder an archive became."""
    source = assignment.artifact
    if source is None:
        return None
    target = folder / "decompressed_artifact"
    target.mkdir(exist_ok=True)
    try:
        if zipfile.is_zipfile(source):
            unpacking.unzip(source, target)
        elif tarfile.is_tarfile(source):
            unpacking.untar(source, target)
        else:
            file = target / (Path(assignment.artifact_name).name or "artifact.py")
            shutil.copyfile(source, file)
            return file
    except (OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise CannotStartError(f"The artifact cannot be unpacked: {error}") from None
    return target


def _merged(base: Mapping[str, Any] | None, over: Mapping[str, Any] | None) -> dict[str, Any]:
    merged = {**(base or {}), **{name: value for name, value in (over or {}).items() if value is not None}}
    variables = {**((base or {}).get("environmentVariables") or {}), **((over or {}).get("environmentVariables") or {})}
    return {**merged, "environmentVariables": variables}
