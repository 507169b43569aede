# SPDX-License-Identifier: Apache-2.0
"""Applies the hosts' reports to instances and commands, and answers the hosts' queries. All functions run on the
simulation's thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from localcloud.aws.account import ACCOUNT
from localcloud.aws.additions import commands, machine_view
from localcloud.aws.machines import Machine, NetworkAround, SecurityGroupRules

_ITSELF = ("Client.InstanceInitiatedShutdown", "Client.InstanceInitiatedShutdown: Instance initiated shutdown")


def start_again() -> None:
    """After a restart of the cloud: restarts the instances that ran, and marks their commands as failed."""
    from moto.ssm.models import ssm_backends

    for backend in list(ssm_backends[ACCOUNT].values()):
        for command in backend._commands:
            for row in command.invocations:
                commands.mark_ended(command, row, 1, "", "The local cloud ended while the command ran")
    for instance in machine_view.living():
        if instance.state in ("pending", "running"):
            machine_view.mark_pending(instance)


def running(instance: str, reason: str = "") -> None:
    one = machine_view.find(instance)
    if one is not None and one.state == "pending":
        machine_view.set_state(one, "running")
        if reason:
            one.state_reason.code, one.state_reason.message = "Server.NoHosts", reason


def agent_ready(instance: str) -> None:
    from moto.core.utils import utcnow

    one = machine_view.find(instance)
    if one is not None and one.state in ("pending", "running"):
        one.trainyard_agent, one.trainyard_agent_since = True, utcnow()


def ended_itself(instance: str) -> None:
    one = machine_view.find(instance)
    if one is None or one.state not in ("pending", "running"):
        return
    if one.instance_initiated_shutdown_behavior == "terminate":
        one.terminate()
        machine_view.mark_ending(one, "terminated")
    else:
        one.stop()
    one.trainyard_agent = False
    one._reason = "Instance initiated shutdown"
    one.state_reason.code, one.state_reason.message = _ITSELF


def failed(instance: str, reason: str) -> None:
    one = machine_view.find(instance)
    if one is not None and one.state in ("pending", "running"):
        one.stop()
        one.trainyard_agent = False
        one._reason = "Server.InternalError"
        one.state_reason.code, one.state_reason.message = "Server.InternalError", reason[:500]


def command_began(command: str, instance: str) -> None:
    if pair := commands.find(command, instance):
        commands.mark_began(*pair)


def command_ended(command: str, instance: str, code: int | None, output: str, errors: str) -> None:
    if pair := commands.find(command, instance):
        commands.mark_ended(*pair, code, output, errors)


def groups(region: str, ids: Sequence[str]) -> list[SecurityGroupRules]:
    rules = (machine_view.group_rules(_ec2(region), one) for one in ids)
    return [group for group in rules if group is not None]


def around(region: str, subnet: str) -> NetworkAround | None:
    return machine_view.around(_ec2(region), subnet)


def machines() -> list[Machine]:
    return [machine_view.machine(one) for one in machine_view.living() if one.state in ("pending", "running")]


def _ec2(region: str) -> Any:
    from moto.ec2.models import ec2_backends

    return ec2_backends[ACCOUNT][region]
