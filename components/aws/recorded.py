# SPDX-License-Identifier: Apache-2.0
"""Reads this stack's state before an `up`: its machines by node, and the templates from which they started."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from components import outputs
from components.outputs import Outputs
from components.plan.model import JobPlan

INSTANCE = "aws:ec2/instance:Instance"
_NODE_JSON = "/etc/trainyard/node.json"


@dataclass(frozen=True)
class Recorded(outputs.Recorded):
    """Resources by URN. Those of a renamed job may have its earlier name."""

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
    """The outputs have no id, but the ARN ends with it."""
    return str(machine.get("arn") or "").rpartition("/")[2]


def node_settings(template: Outputs) -> Mapping[str, Any]:
    """The node.json in a template's user data. Empty if it cannot be read: then the message about a change has less
    detail."""
    try:
        config = yaml.safe_load(b64decode(str(template["userData"])))
        (text,) = [file["content"] for file in config["write_files"] if file["path"] == _NODE_JSON]
        settings = json.loads(text)
    except (KeyError, TypeError, ValueError, yaml.YAMLError):
        return {}
    return settings if isinstance(settings, dict) else {}
