# SPDX-License-Identifier: Apache-2.0
"""What a machine is told: its settings from node.json, its name and rank from its own tags."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass

from launcher.aws_dl1.fetch import AwsError, Metadata
from launcher.aws_dl1.machine.places import Places
from launcher.errors import LaunchError, MissingError

_DATA = "/latest/meta-data"
_INTERRUPTION = f"{_DATA}/spot/instance-action"
_REMEDY = "give the instance the tags `node` and `rank`, and show tags in its metadata"


@dataclass(frozen=True)
class Settings:
    """node.json."""

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


@dataclass(frozen=True)
class Instance:
    """This machine among the others of its cluster."""

    instance: str
    node: str
    rank: int
    address: str


def read_settings(places: Places) -> Settings:
    """LaunchError where user data wrote something else."""
    try:
        content = json.loads(places.settings.read_text("utf-8"))
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
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LaunchError(f"{places.settings} cannot be used ({error!r}): make the machine anew by its stack") from None


def read_instance(metadata: Metadata) -> Instance:
    """MissingError where the metadata service does not say it (yet)."""
    try:
        node, rank = metadata.get(f"{_DATA}/tags/instance/node"), metadata.get(f"{_DATA}/tags/instance/rank")
        instance, address = metadata.get(f"{_DATA}/instance-id"), metadata.get(f"{_DATA}/local-ipv4")
    except (AwsError, OSError, http.client.HTTPException) as error:
        raise MissingError(f"the metadata service of the instance does not answer: {error}") from None
    if not node or not (rank or "").isdigit() or not instance or not address:
        raise MissingError(f"the metadata service does not say which node this is: {_REMEDY}")
    return Instance(instance, node, int(rank or 0), address)


def interruption(metadata: Metadata) -> str:
    """When AWS takes a spot instance back, and how; empty while it does not."""
    try:
        text = metadata.get(_INTERRUPTION)
        notice: Mapping[str, str] = json.loads(text) if text else {}
    except (AwsError, OSError, http.client.HTTPException, ValueError):
        return ""
    if not notice:
        return ""
    return f"AWS takes this spot instance back ({notice.get('action')} at {notice.get('time')})"
