# SPDX-License-Identifier: Apache-2.0
"""Reads what a machine knows of itself: its settings from node.json, its name and rank from its own tags."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.aws_dl1.accelerators import Accelerator, parse_accelerator
from launcher.aws_dl1.fetch import AwsError, Metadata
from launcher.aws_dl1.host_nic import BEFORE_NODE_JSON_NAMED_THEM
from launcher.errors import LaunchError, MissingError

ROOT_VARIABLE = "TRAINYARD_MACHINE_ROOT"
_DATA = "/latest/meta-data"
_INTERRUPTION = f"{_DATA}/spot/instance-action"
_REMEDY = "give the instance the tags `node` and `rank`, and show tags in its metadata"


@dataclass(frozen=True)
class MachinePaths:
    """The machine's paths, below one root: `/`, except in tests."""

    root: Path

    @property
    def settings(self) -> Path:
        return self.root / "etc/trainyard/node.json"

    @property
    def launchers(self) -> Path:
        return self.root / "opt/trainyard/launchers"

    @property
    def codes(self) -> Path:
        return self.root / "var/lib/trainyard/code"

    @property
    def starts(self) -> Path:
        return self.root / "var/lib/trainyard/starts"

    @property
    def scratch(self) -> Path:
        """The folder of the local disk, if the machine has one."""
        return self.root / "var/lib/trainyard/scratch"

    @property
    def run(self) -> Path:
        """The folder that each boot empties."""
        return self.root / "run/trainyard-node"

    @property
    def home(self) -> Path:
        return self.root / "root"

    @property
    def rdma_devices(self) -> Path:
        return self.root / "dev/infiniband"

    def boot(self) -> str:
        """The id of this boot, from a file that each boot removes."""
        file = self.run / "boot"
        try:
            return file.read_text("ascii")
        except FileNotFoundError:
            write_atomically(file, uuid.uuid4().hex.encode())
            return file.read_text("ascii")


def machine_paths(environment: Mapping[str, str]) -> MachinePaths:
    """The paths of this machine."""
    return MachinePaths(Path(environment.get(ROOT_VARIABLE) or "/"))


def write_atomically(file: Path, content: bytes, mode: int = 0o600) -> None:
    """Writes a draft beside the file and moves it there, so that a power cut leaves no partial file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(number, "wb") as opened:
        os.fchmod(number, mode)
        opened.write(content)
        opened.flush()
        os.fsync(number)
    draft.replace(file)


def write_json(file: Path, content: Mapping[str, Any]) -> None:
    write_atomically(file, json.dumps(content).encode())


def read_json_object(file: Path) -> dict[str, Any] | None:
    """The content of a file; None if it does not exist or is not whole."""
    try:
        content = json.loads(file.read_bytes())
    except (FileNotFoundError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def remove_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Settings:
    """The settings in node.json, which user data wrote."""

    region: str
    bucket: str
    job: str
    launcher: str
    code: str | None
    log_group: str | None
    ssh_secret: str
    ssh_port: int
    release: str
    host_nic: str
    efa_interfaces: int
    stop_when_idle_minutes: float
    accelerator: Accelerator


@dataclass(frozen=True)
class Instance:
    """This machine among the others of its cluster."""

    instance: str
    node: str
    rank: int
    address: str


def read_machine_settings(paths: MachinePaths) -> Settings:
    """Reads the settings. LaunchError if user data wrote something else."""
    try:
        content = json.loads(paths.settings.read_text("utf-8"))
        row = content.get("accelerator")
        return Settings(
            region=content["region"],
            bucket=content["bucket"],
            job=content["job"],
            launcher=content["launcher"],
            code=content["code"],
            log_group=content["logGroup"],
            ssh_secret=content["sshSecret"],
            ssh_port=int(content["sshPort"]),
            release=content["release"],
            host_nic=content["hostNic"],
            efa_interfaces=int(content["efaInterfaces"]),
            stop_when_idle_minutes=float(content["stopWhenIdleMinutes"] or 0),
            accelerator=BEFORE_NODE_JSON_NAMED_THEM if row is None else parse_accelerator(row),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise LaunchError(f"{paths.settings} cannot be used ({error!r}): make the machine anew by its stack") from None


def read_instance(metadata: Metadata) -> Instance:
    """Reads the instance. MissingError if the metadata service does not have it (yet)."""
    try:
        node, rank = metadata.get(f"{_DATA}/tags/instance/node"), metadata.get(f"{_DATA}/tags/instance/rank")
        instance, address = metadata.get(f"{_DATA}/instance-id"), metadata.get(f"{_DATA}/local-ipv4")
    except (AwsError, OSError, http.client.HTTPException) as error:
        raise MissingError(f"the metadata service of the instance does not answer: {error}") from None
    if not node or not (rank or "").isdigit() or not instance or not address:
        raise MissingError(f"the metadata service does not say which node this is: {_REMEDY}")
    return Instance(instance, node, int(rank or 0), address)


def spot_interruption(metadata: Metadata) -> str:
    """The notice that AWS takes this spot instance back, for people; empty if there is none."""
    try:
        text = metadata.get(_INTERRUPTION)
        notice: Mapping[str, str] = json.loads(text) if text else {}
    except (AwsError, OSError, http.client.HTTPException, ValueError):
        return ""
    if not notice:
        return ""
    return f"AWS takes this spot instance back ({notice.get('action')} at {notice.get('time')})"
