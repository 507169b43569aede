# SPDX-License-Identifier: Apache-2.0
"""The machines of a stack: they stay between runs, and cost as long as they are up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from components.aws_dl1.local.calls import ask
from components.aws_dl1.local.sessions import DEPLOYER, region_of, session_of
from components.aws_dl1.local.types import INSTANCE
from components.platform.calls import Tell
from components.platform.durations import duration
from components.platform.local_cloud import LocalCloud
from components.platform.states import Row

_UP = ("pending", "running")


def describe_machines(cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> list[str]:
    """Each machine with its state. Where it is up: since when."""
    ids = [row["id"] for row in rows if row["type"] == INSTANCE]
    if not ids:
        return []
    client = session_of(cloud, DEPLOYER, region_of(rows)).client("ec2")
    answer = ask(tell, "List the machines", partial(client.describe_instances, Filters=_by_id(ids)))
    machines = [one for reservation in answer["Reservations"] for one in reservation["Instances"]]
    return sorted(_described(one) for one in machines if one["State"]["Name"] != "terminated")


def _by_id(ids: Sequence[str]) -> list[dict[str, Any]]:
    # A filter, because AWS refuses to list by ids where one of them is gone.
    return [{"Name": "instance-id", "Values": list(ids)}]


def _described(machine: Any) -> str:
    tags = {tag["Key"]: tag["Value"] for tag in machine.get("Tags", ())}
    name = "/".join(filter(None, (tags.get("job"), tags.get("node")))) or machine["InstanceId"]
    state, since = machine["State"]["Name"], machine["LaunchTime"]
    if state not in _UP:
        return f"{name}: {state}, {machine['InstanceId']}"
    up = duration((datetime.now(UTC) - since).total_seconds())
    return f"{name}: {state} since {since:%Y-%m-%d %H:%M:%S} UTC ({up}), {machine['InstanceId']}"
