# SPDX-License-Identifier: Apache-2.0
"""RunInstances with AWS's checks, and instances whose states follow the hosts.

moto accepts any type in any zone, and instances run at once. This module checks type, zone, network cards, quota and
capacity. An instance is pending until the hosts report that it runs.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from catalog.aws import CAPACITY_BLOCK, ON_DEMAND, SPOT, aws_machine, vcpu_quota
from localcloud.aws.access.ec2_needs import SPOT_ROLE, SPOT_SERVICE
from localcloud.aws.access.policies import role_named
from localcloud.aws.additions import capacity, instance_types, machine_view, placement
from localcloud.aws.additions.changes import disassociate_addresses
from localcloud.aws.additions.outside import Operations, action_result, attached_outside, own_table
from localcloud.aws.aws_errors import aws_refusal
from localcloud.aws.moto_state import moto_backend
from localcloud.aws.refusals.launches import check_interfaces, check_launch

# moto identifies an interface by its device index alone, but on AWS the indices of each network card begin at 0. So
# this much is added to the index for each card.
_CARD_STEP = 64


class Launches(Operations):
    """Operations of EC2."""

    def run_instances(self) -> Any:
        token = self._get_param("ClientToken")
        earlier = own_table(self.ec2_backend, "tokens")
        if token and token in earlier:
            return action_result(self.ec2_backend.reservations[earlier[token]])
        template = None
        if named := self.params.pop("LaunchTemplate", None):
            # The call has the template's parameters already. moto would apply some of them once more.
            template = self.ec2_backend._get_template_from_args(named)
        wanted = copy.deepcopy(dict(self.params))
        reservation = _check_launch(self, wanted)
        for interface in self.params.get("NetworkInterfaces", []):
            card = int(interface.get("NetworkCardIndex") or 0)
            interface["DeviceIndex"] = card * _CARD_STEP + int(interface.get("DeviceIndex") or 0)
        for device in self.params.get("BlockDeviceMappings", []):
            if "Ebs" in device:
                device["Ebs"].setdefault("DeleteOnTermination", True)
        self.params["MinCount"] = self._get_int_param("MaxCount", 1)
        result = self._by_moto("run_instances")
        if wanted.get("InstanceMarketOptions", {}).get("MarketType") == SPOT and role_named(SPOT_ROLE) is None:
            moto_backend("iam").create_service_linked_role(SPOT_SERVICE, "Default EC2 Spot Service Linked Role", "")
        for instance in result.result.instances:
            _complete_instance(self, instance, wanted)
            if template is not None:
                instance.add_tags({
                    "aws:ec2launchtemplate:id": template.template.id,
                    "aws:ec2launchtemplate:version": str(template.number),
                })  # fmt: skip
            instance.capacity_reservation_id = reservation or None
            if _lifecycle_of(wanted) == CAPACITY_BLOCK:  # moto takes any market for the one of spot machines
                instance.lifecycle = CAPACITY_BLOCK
            machine_view.mark_pending(instance)
        if token:
            earlier[token] = result.result.id
        return result

    def start_instances(self) -> Any:
        stopped = list(self.ec2_backend.get_multi_instances_by_id(self._get_param("InstanceIds", [])))
        for instance in stopped:
            if instance.state == "terminated":
                raise aws_refusal("start terminated", instance=instance.id)
            if instance.state == "stopped" and attached_outside().no_capacity(instance.instance_type):
                raise aws_refusal("start exhausted")
        rest = [instance for instance in stopped if instance.state == "stopped"]
        in_blocks = (one.capacity_reservation_id for one in rest if one.lifecycle == CAPACITY_BLOCK)
        for reservation, count in Counter(in_blocks).items():
            capacity.check_places(self.ec2_backend, reservation, count)
        result = self._by_moto("start_instances")
        for instance in rest:
            machine_view.mark_pending(instance)
        return result

    def stop_instances(self) -> Any:
        return _end_instance(self, "stopped")

    def terminate_instances(self) -> Any:
        return _end_instance(self, "terminated")

    def reboot_instances(self) -> Any:
        instances = self.ec2_backend.get_multi_instances_by_id(self._get_param("InstanceIds", []))
        result = self._by_moto("reboot_instances")
        for instance in instances:
            reboot = partial(attached_outside().machines.rebooted, machine_view.machine_of_instance(instance))
            attached_outside().defer(reboot)
        return result


def _check_launch(self: Any, wanted: dict[str, Any]) -> str:
    """Checks a launch, in AWS's order: malformed values, missing resources, lack of capacity. Returns the id of the
    capacity reservation that the instances use, or ""."""
    kind = wanted.get("InstanceType", "m1.small")
    backend, count = self.ec2_backend, self._get_int_param("MaxCount", 1)
    check_launch(wanted)
    backend.describe_instance_types([kind])
    if not wanted.get("ImageId"):
        raise aws_refusal("image missing")
    backend.describe_images(ami_ids=[wanted["ImageId"]])
    if name := wanted.get("KeyName"):
        backend.describe_key_pairs(key_names=[name])
    check_interfaces(kind, wanted)
    interfaces = wanted.get("NetworkInterfaces", [])
    subnet = wanted.get("SubnetId") or next((one["SubnetId"] for one in interfaces if one.get("SubnetId")), None)
    where = wanted.get("Placement", {})
    zone = str(where.get("AvailabilityZone") or f"{backend.region_name}a")
    if subnet:
        zone = str(backend.get_subnet(subnet).availability_zone)
    if not instance_types.is_offered(backend, kind, zone):
        raise aws_refusal("machine not offered", kind=kind, zone=zone)
    if group := where.get("GroupName"):
        placement.find_group(backend, group)
    _check_quota(self, kind, wanted, count)
    reservation = capacity.choose_reservation(backend, wanted, kind, zone, count)
    # A `no-capacity` fault does not affect reserved capacity.
    if not reservation and attached_outside().no_capacity(kind):
        raise aws_refusal("machines exhausted", kind=kind, zone=zone)
    return reservation


def _check_quota(self: Any, kind: str, wanted: dict[str, Any], count: int) -> None:
    """Machines of several types may count to one quota, and those in a capacity block count to none."""
    lifecycle = _lifecycle_of(wanted)
    machine = aws_machine(kind)
    quota = vcpu_quota(machine, lifecycle) if machine else None
    if machine is None or quota is None:
        return
    vcpus = count * machine.vcpus
    for instance in self.ec2_backend.all_instances():
        other = aws_machine(instance.instance_type)
        same = other and vcpu_quota(other, instance.lifecycle or ON_DEMAND) == quota
        if other and same and instance.state in ("pending", "running"):
            vcpus += other.vcpus
    limit = instance_types.quota_value(quota.code)
    if vcpus > limit:
        code = "MaxSpotInstanceCountExceeded" if lifecycle == SPOT else "VcpuLimitExceeded"
        raise aws_refusal("vcpu quota", code=code, limit=limit)


def _lifecycle_of(wanted: dict[str, Any]) -> str:
    market = wanted.get("InstanceMarketOptions", {}).get("MarketType")
    return str(market) if market in (SPOT, CAPACITY_BLOCK) else ON_DEMAND


def _complete_instance(self: Any, instance: Any, wanted: dict[str, Any]) -> None:
    """Sets attributes of an instance that moto ignores at a launch."""
    where = wanted.get("Placement", {})
    instance._placement.group_name = where.get("GroupName", "")
    instance._placement.tenancy = where.get("Tenancy", "default")
    instance.disable_api_termination = bool(wanted.get("DisableApiTermination"))
    for nic in instance.nics.values():
        nic.delete_on_termination = True  # AWS's default
    interfaces = wanted.get("NetworkInterfaces", [])
    for interface in interfaces:
        device, card = int(interface.get("DeviceIndex") or 0), int(interface.get("NetworkCardIndex") or 0)
        nic = instance.nics[card * _CARD_STEP + device]
        nic.device_index, nic.network_card_index = device, card
        nic.interface_type = interface.get("InterfaceType") or "interface"
        nic.delete_on_termination = interface.get("DeleteOnTermination", True)
    for row in wanted.get("TagSpecifications", []):
        if row.get("ResourceType") == "network-interface":
            for nic in instance.nics.values():
                nic.add_tags({tag["Key"]: tag.get("Value", "") for tag in row.get("Tags", [])})
    profile = wanted.get("IamInstanceProfile", {})
    if profile and not instance.iam_instance_profile:
        self.ec2_backend.associate_iam_instance_profile(
            instance_id=instance.id, iam_instance_profile_name=profile.get("Name"),
            iam_instance_profile_arn=profile.get("Arn"),
        )  # fmt: skip


def _end_instance(self: Any, how: str) -> Any:
    ids = self._get_param("InstanceIds", [])
    instances = [one for one in self.ec2_backend.get_multi_instances_by_id(ids) if one.state != "terminated"]
    if how == "stopped" and any(getattr(one, "lifecycle", "") == "spot" for one in instances):
        raise aws_refusal("stop spot")
    result = self._by_moto("stop_instances" if how == "stopped" else "terminate_instances")
    for instance in instances:
        if how == "terminated":
            disassociate_addresses(self.ec2_backend, {nic.id for nic in instance.nics.values()})
        machine_view.mark_ending(instance, how)
    return result


def terminate_after_blocks(instances: Sequence[Any]) -> None:
    """Ends machines as AWS does before the end of their capacity block."""
    for instance in instances:
        instance.terminate()
        disassociate_addresses(instance.ec2_backend, {nic.id for nic in instance.nics.values()})
        machine_view.mark_ending(instance, "terminated")
        instance._reason = "Server.CapacityBlockEnded: the capacity block ends within 30 minutes"
