# SPDX-License-Identifier: Apache-2.0
"""The launch template of a cluster's machines as values, and existing machines and templates read from this stack's
state.

Tests compare templates with AWS's own models.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from catalog.aws import CAPACITY_BLOCK, SPOT
from components import outputs
from components.aws.plan import ClusterPlan
from components.outputs import Outputs
from components.plan.model import JobPlan

LONGEST_NAME = 110


@dataclass(frozen=True)
class MachinePlace:
    """Where a machine starts: ids, or Pulumi's outputs that become ids."""

    subnet: Any
    group: Any
    profile: Any


@dataclass(frozen=True, slots=True)
class MachineImage:
    """`named_by`: what the stack file names, the id itself or a parameter."""

    id: str
    device: str
    named_by: str


def launch_template(
    cluster: ClusterPlan, image: MachineImage, place: MachinePlace, user_data: Any, tags: Mapping[str, str]
) -> dict[str, Any]:
    """The arguments of the launch template."""
    ours = {"tags": dict(tags)}
    disk = {"volume_size": cluster.disk_gb, "volume_type": "gp3", "encrypted": "true", "delete_on_termination": "true"}
    interfaces: list[dict[str, Any]] = [
        {
            "network_card_index": interface.card,
            "device_index": interface.device,
            "subnet_id": place.subnet,
            "security_groups": [place.group],
            "delete_on_termination": "true",
            **({"interface_type": interface.kind} if interface.kind != "interface" else {}),
        }
        for interface in cluster.interfaces
    ]
    if len(interfaces) == 1:
        # With several interfaces, AWS refuses this setting.
        interfaces[0]["associate_public_ip_address"] = str(cluster.public_address == "automatic").lower()
    name = cluster.placement_group or (cluster.name if cluster.make_placement_group else None)
    return {
        "image_id": image.id,
        "instance_type": cluster.instance_type,
        "user_data": user_data,
        "iam_instance_profile": {"name": place.profile},
        "instance_initiated_shutdown_behavior": "stop",
        "monitoring": {"enabled": True},
        "metadata_options": {
            "http_endpoint": "enabled",
            "http_tokens": "required",
            # Containers share the machine's network, so there is no hop between them and the metadata service.
            "http_put_response_hop_limit": 1,
            "instance_metadata_tags": "enabled",
        },
        "block_device_mappings": [{"device_name": image.device, "ebs": disk}],
        "network_interfaces": interfaces,
        **({"placement": {"group_name": name}} if name else {}),
        **_purchase_options(cluster),
        "tag_specifications": [{"resource_type": kind, **ours} for kind in ("volume", "network-interface")],
    }


def template_name(cluster: ClusterPlan, image: MachineImage, settings: Mapping[str, Any]) -> str:
    """A name that changes with every setting that cannot change on an existing machine.

    An instance keeps the version that it started from, and only another template replaces it. The launcher is not part
    of the name, so that a new release of trainyard replaces no machine. Nor is the image's id if a parameter holds it.
    """
    forced = [
        cluster.instance_type, image.named_by, cluster.efa, cluster.disk_gb, cluster.placement_group,
        cluster.reservation, cluster.market == SPOT, cluster.public_address == "automatic", dict(settings),
        # What later releases added is there only where it is set: one element more would replace all machines.
        *([cluster.market] if cluster.market == CAPACITY_BLOCK else []),
    ]  # fmt: skip
    digest = hashlib.sha256(json.dumps(forced, sort_keys=True).encode()).hexdigest()
    return f"{cluster.name[:LONGEST_NAME]}-{digest[:8]}"


def encode_user_data(user_data: str) -> str:
    return b64encode(user_data.encode()).decode()


def _purchase_options(cluster: ClusterPlan) -> dict[str, Any]:
    if cluster.reservation:
        target = {"capacity_reservation_id": cluster.reservation}
        block = {"instance_market_options": {"market_type": CAPACITY_BLOCK}} if cluster.market == CAPACITY_BLOCK else {}
        return {"capacity_reservation_specification": {"capacity_reservation_target": target}, **block}
    if cluster.market == SPOT:
        # Only with a persistent request can a spot machine start again after it was stopped, by AWS or because it was
        # idle.
        options = {"spot_instance_type": "persistent", "instance_interruption_behavior": "stop"}
        return {"instance_market_options": {"market_type": "spot", "spot_options": options}}
    return {}


INSTANCE = "aws:ec2/instance:Instance"
_NODE_JSON = "/etc/trainyard/node.json"


@dataclass(frozen=True)
class Recorded(outputs.Recorded):
    """Resources by URN. The resources of a renamed job may have its earlier name."""

    def machines(self, job: JobPlan) -> dict[str, str]:
        """The ids of a job's machines, by the names of their nodes."""
        marks = tuple(f"{INSTANCE}::{name}/" for name in (job.name, *job.was))
        return {
            urn.rpartition("/")[2]: instance_id(machine)
            for urn, machine in self.resources.items()
            if any(mark in urn for mark in marks)
        }

    @property
    def instances(self) -> frozenset[str]:
        return frozenset(instance_id(machine) for urn, machine in self.resources.items() if f"{INSTANCE}::" in urn)


def read_recorded() -> Recorded:
    return Recorded(outputs.recorded_resources())


def instance_id(machine: Outputs) -> str:
    """The id of an instance. The outputs have no id, but the ARN ends with it."""
    return str(machine.get("arn") or "").rpartition("/")[2]


def node_settings(template: Outputs) -> Mapping[str, Any]:
    """The node.json in a template's user data. Empty if it is unreadable: then messages about changes have less
    detail."""
    try:
        config = yaml.safe_load(b64decode(str(template["userData"])))
        (text,) = [file["content"] for file in config["write_files"] if file["path"] == _NODE_JSON]
        settings = json.loads(text)
    except (KeyError, TypeError, ValueError, yaml.YAMLError):
        return {}
    return settings if isinstance(settings, dict) else {}
