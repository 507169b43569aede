# SPDX-License-Identifier: Apache-2.0
"""Converts moto's instances, security groups and subnets to values for the hosts, and applies the hosts' reports of
instances. All functions run on the simulation's thread."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from components.aws.types.security_rules import read_security_rules
from components.values.security_rules import Direction, SecurityRule
from localcloud.aws.additions.outside import attached_outside, utc_now
from localcloud.aws.machines import Machine, MachineInterface, SecurityGroupRules, SubnetFacts
from localcloud.aws.moto_state import moto_backends

_ACTIVE = ("pending", "running")
_SHUT_DOWN = ("Client.InstanceInitiatedShutdown", "Client.InstanceInitiatedShutdown: Instance initiated shutdown")
_STATES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}


def ec2_backends_in_use() -> Iterator[Any]:
    """moto's EC2 backends, of the regions that are in use."""
    yield from list(moto_backends("ec2").values())


def find_instance(instance: str) -> Any:
    """The instance with this id, or None."""
    for backend in ec2_backends_in_use():
        for one in backend.all_instances():
            if one.id == instance:
                return one
    return None


def living_instances(region: str = "") -> list[Any]:
    """All instances that are not terminated, of one region or of all."""
    return [
        one
        for backend in ec2_backends_in_use()
        if region in ("", backend.region_name)
        for one in backend.all_instances()
        if one.state != "terminated"
    ]


def set_instance_state(instance: Any, state: str) -> None:
    instance._state.name, instance._state.code = state, _STATES[state]


def mark_pending(instance: Any) -> None:
    """Makes an instance pending. After that is saved, the hosts start it."""
    set_instance_state(instance, "pending")
    # AWS updates the launch time at every start, and moto does not.
    instance.launch_time = utc_now()
    instance.trainyard_agent = False
    starting = machine_of_instance(instance)
    attached_outside().defer(lambda: attached_outside().machines.started(starting))


def mark_ending(instance: Any, how: str) -> None:
    """Has the hosts stop or terminate an instance after the call is saved."""
    instance.trainyard_agent = False
    if how == "terminated":
        for nic in instance.nics.values():
            nic.delete_on_termination = False  # moto would fail to delete it when the instance is terminated again
    hosts, identifier = attached_outside().machines, instance.id
    attached_outside().defer(lambda: (hosts.stopped if how == "stopped" else hosts.terminated)(identifier))


def mark_running(instance: str) -> None:
    one = find_instance(instance)
    if one is not None and one.state == "pending":
        set_instance_state(one, "running")


def mark_agent_ready(instance: str) -> None:
    one = find_instance(instance)
    if one is not None and one.state in _ACTIVE:
        one.trainyard_agent, one.trainyard_agent_since = True, utc_now()


def mark_shut_down(instance: str) -> None:
    """After an instance shut itself down: stops or terminates it, as its settings say."""
    one = find_instance(instance)
    if one is None or one.state not in _ACTIVE:
        return
    if one.instance_initiated_shutdown_behavior == "terminate":
        one.terminate()
        mark_ending(one, "terminated")
    else:
        one.stop()
    one.trainyard_agent = False
    one._reason = "Instance initiated shutdown"
    one.state_reason.code, one.state_reason.message = _SHUT_DOWN


def mark_failed(instance: str, reason: str) -> None:
    one = find_instance(instance)
    if one is not None and one.state in _ACTIVE:
        one.stop()
        one.trainyard_agent = False
        one._reason = "Server.InternalError"
        one.state_reason.code, one.state_reason.message = "Server.InternalError", reason[:500]


def active_instances() -> list[Any]:
    """The instances that are pending or running."""
    return [one for one in living_instances() if one.state in _ACTIVE]


def active_machines() -> list[Machine]:
    return [machine_of_instance(one) for one in active_instances()]


def machine_of_instance(instance: Any) -> Machine:
    tags = {tag["key"]: tag["value"] for tag in instance.get_tags()}
    return Machine(
        id=instance.id, instance_type=instance.instance_type, image=instance.image_id,
        region=instance.ec2_backend.region_name,
        subnet=instance.subnet_id or "", user_data=_decoded_user_data(instance), tags=tags,
        interfaces=tuple(
            MachineInterface(
                nic.id, nic.private_ip_address, tuple(group.id for group in nic.group_set), nic.interface_type,
                nic.mac_address,
            )
            for _, nic in sorted(instance.nics.items())
        ),
        metadata=attached_outside().metadata_path(instance.id),
    )  # fmt: skip


def _decoded_user_data(instance: Any) -> bytes:
    from moto.ec2.exceptions import EC2ClientError

    if instance.user_data is None:
        return b""
    try:
        return base64.b64decode(str(instance.user_data), validate=True)
    except ValueError:
        # An error of moto, after which the whole call is rolled back: the instance has been started already.
        raise EC2ClientError("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.") from None


def group_rules(backend: Any, identifier: str) -> SecurityGroupRules | None:
    group = backend.get_security_group_from_id(identifier)
    if group is None:
        return None
    return SecurityGroupRules(
        group.id,
        group.name,
        tuple(_read_group_rules(group.ingress_rules, "ingress")),
        tuple(_read_group_rules(group.egress_rules, "egress")),
    )


def _read_group_rules(rules: Any, direction: Direction) -> Iterator[SecurityRule]:
    for rule in rules:
        block, group = rule.ip_range, rule.source_group
        row = {
            "ipProtocol": str(rule.ip_protocol),
            "fromPort": None if rule.from_port == "" else rule.from_port,
            "toPort": None if rule.to_port == "" else rule.to_port,
            "cidrIpv4": block.get("CidrIp"),
            "cidrIpv6": block.get("CidrIpv6"),
            "referencedSecurityGroupId": group.get("GroupId"),
            "prefixListId": rule.prefix_list_id,
            "description": str(rule.description or group.get("Description") or ""),
        }
        yield from read_security_rules(row, direction)


def subnet_facts(backend: Any, identifier: str) -> SubnetFacts | None:
    subnet = next((zone[identifier] for zone in backend.subnets.values() if identifier in zone), None)
    if subnet is None:
        return None
    vpc = backend.get_vpc(subnet.vpc_id)
    blocks = tuple(row["cidr_block"] for row in vpc.get_cidr_block_association_set())
    tables = [one for one in backend.route_tables.values() if one.vpc_id == subnet.vpc_id]
    own = [one for one in tables if subnet.id in one._associations.values()]
    used = (own or [one for one in tables if one.main_association_id] or [None])[0]
    routes = []
    for route in used.routes if used else ():
        prefix = route.destination_prefix_list
        nat = route.nat_gateway.id if route.nat_gateway else ""
        target = nat or route.gateway_id or next((one.id for one in (route.interface, route.instance) if one), "")
        routes.append((route.destination_cidr_block or (prefix.id if prefix else ""), target))
    in_network = [one for one in backend.vpc_end_points.values() if one.vpc_id == subnet.vpc_id]
    endpoints = [tuple(one.security_group_ids) for one in in_network if one.vpc_endpoint_type == "Interface"]
    return SubnetFacts(subnet.id, subnet.cidr_block, subnet.vpc_id, blocks, tuple(routes), tuple(endpoints))
