# SPDX-License-Identifier: Apache-2.0
"""Changes of resources that moto refuses, or accepts and does not store."""

from __future__ import annotations

import json
from typing import Any

from localcloud.aws.additions import capacity, placement
from localcloud.aws.additions.descriptions import add_ports, complete_change
from localcloud.aws.additions.outside import Operations, action_result
from localcloud.aws.aws_errors import aws_refusal

# Resource types that moto cannot tag -> the prefix of their ids.
_TAGGED = {"placement-group": "pg", "capacity-reservation": "cr"}
# The kinds of peers of a security group's rule -> AWS's words for them in messages.
_PEERS = {
    "CidrIpv4": "CIDR IPv4", "CidrIpv6": "CIDR IPv6", "PrefixListId": "prefix list id",
    "ReferencedGroupId": "referenced group id",
}  # fmt: skip
# Parameters of ModifySubnetAttribute -> fields in DescribeSubnets.
_NAMES_ON_LAUNCH = {
    "EnableResourceNameDnsAAAARecordOnLaunch.Value": "EnableResourceNameDnsAAAARecord",
    "PrivateDnsHostnameTypeOnLaunch": "HostnameType",
}


def install_template_changes(template: Any) -> None:
    """Changes moto's class of launch templates. Called once in a process."""
    from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, EC2_RESOURCE_TO_PREFIX

    EC2_RESOURCE_TO_PREFIX.update(_TAGGED)
    EC2_PREFIX_TO_RESOURCE.update({prefix: kind for kind, prefix in _TAGGED.items()})
    # moto shows the tags that a template was created with, and not later changes.
    template.tags = property(lambda self: self.get_tags(), lambda self, copy: None)


class Changes(Operations):
    """Operations of EC2."""

    def create_tags(self) -> Any:
        from moto.ec2.models import validate_resource_ids

        ids = self._get_param("Resources", [])
        validate_resource_ids(ids)
        for identifier in ids:
            if identifier.startswith("pg-"):
                placement.group_by_id(self.ec2_backend, identifier)
            elif identifier.startswith("cr-"):
                capacity.find_reservation(self.ec2_backend, identifier)
        return self._by_moto("create_tags")

    def create_launch_template(self) -> Any:
        """moto also stores the template's own tags among those that it gives to instances. This removes them there."""
        answer = self._by_moto("create_launch_template")
        template = self.ec2_backend.get_launch_template(answer.result["LaunchTemplate"]["LaunchTemplateId"])
        data = template.default_version().data
        rows = [row for row in data.pop("TagSpecifications", []) if row.get("ResourceType") != "launch-template"]
        if rows:
            data["TagSpecifications"] = rows
        return answer

    def create_vpc_endpoint(self) -> Any:
        self.params["VpcEndpointType"] = self._get_param("VpcEndpointType") or "Gateway"
        return self._by_moto("create_vpc_endpoint")

    def delete_nat_gateway(self) -> Any:
        """Also deletes the gateway's interface, and disassociates its address. moto does neither."""
        answer = self._by_moto("delete_nat_gateway")
        interface = self.ec2_backend.nat_gateways[answer.result["NatGatewayId"]]._eni.id
        if self.ec2_backend.enis.pop(interface, None) is not None:
            disassociate_addresses(self.ec2_backend, {interface})
        return answer

    def delete_subnet(self) -> Any:
        """Its association with a route table ends with it. moto keeps that, so the table could not be deleted."""
        answer = self._by_moto("delete_subnet")
        gone = self._get_param("SubnetId")
        for table in self.ec2_backend.route_tables.values():
            for association in [name for name, subnet in table._associations.items() if subnet == gone]:
                del table._associations[association]
        return answer

    def delete_vpc_endpoints(self) -> Any:
        """Removes the endpoints. moto lists them as deleted forever, while the real provider waits until they are
        gone."""
        answer = self._by_moto("delete_vpc_endpoints")
        for identifier in self._get_param("VpcEndpointIds", []):
            self.ec2_backend.vpc_end_points.pop(identifier, None)
            self.ec2_backend.tags.pop(identifier, None)
        return answer

    def modify_subnet_attribute(self) -> Any:
        subnet = self.ec2_backend.get_subnet(self._get_param("SubnetId"))
        for parameter, name in _NAMES_ON_LAUNCH.items():
            if (value := self._get_param(parameter)) is not None:
                subnet.private_dns_name_options_on_launch[name] = value
        return self._by_moto("modify_subnet_attribute")

    def modify_security_group_rules(self) -> Any:
        self.error_on_dryrun()
        given = self._get_param("SecurityGroupRules", [])
        rules = {row["SecurityGroupRuleId"]: row["SecurityGroupRule"] for row in given}
        group = self._get_param("GroupId")
        backend_group = self.ec2_backend.get_security_group_by_name_or_id(group)
        changes = rules.items() if backend_group else ()
        pairs = [(rule, backend_group.get_rule(identifier)) for identifier, rule in changes]
        for rule, existing in pairs:
            # AWS replaces a CIDR only by a CIDR, a group only by a group.
            given = next((kind for kind in _PEERS if rule.get(kind) is not None), None)
            if existing is None or given is None:
                continue
            has = {
                "CidrIpv4": existing.cidr_ipv4, "CidrIpv6": existing.cidr_ipv6, "PrefixListId": existing.prefix_list_id,
                "ReferencedGroupId": existing.source_group,
            }  # fmt: skip
            current = next((kind for kind in _PEERS if has[kind]), given)
            if current != given:
                raise aws_refusal("peer kind", given=_PEERS[given], current=_PEERS[current])
        self.ec2_backend.modify_security_group_rules(group, add_ports(rules))
        for rule, existing in pairs:
            # moto itself changes only IPv4 CIDRs.
            if block := rule.get("CidrIpv6"):
                existing.ip_range["CidrIpv6"] = block
            if prefixes := rule.get("PrefixListId"):
                existing.prefix_list_id = prefixes
            if peer := rule.get("ReferencedGroupId"):
                existing.source_group = {**existing.source_group, "GroupId": peer}
            complete_change(existing, rule)
        return action_result({"Return": True})


def disassociate_addresses(backend: Any, interfaces: set[str]) -> None:
    """Disassociates the elastic addresses of deleted interfaces."""
    for address in backend.addresses:
        if address.eni is not None and address.eni.id in interfaces:
            address.eni.public_ip = address.eni = address.instance = address.association_id = None


class KmsKeys(Operations):
    """Operations of KMS. They accept ARNs of keys, while moto accepts only ids."""

    def disable_key(self) -> str:
        return json.dumps(self._change("disable_key"))

    def enable_key(self) -> str:
        return json.dumps(self._change("enable_key"))

    def schedule_key_deletion(self) -> str:
        days = self._get_param("PendingWindowInDays")
        end = self._change("schedule_key_deletion", 30 if days is None else days)
        return json.dumps({"KeyId": self._get_param("KeyId"), "DeletionDate": end})

    def cancel_key_deletion(self) -> str:
        self._change("cancel_key_deletion")
        return json.dumps({"KeyId": self._get_param("KeyId")})

    def _change(self, name: str, *more: Any) -> Any:
        named = self._get_param("KeyId")
        self._validate_cmk_id(named)
        return getattr(self.kms_backend, name)(self.kms_backend.any_id_to_key_id(named), *more)


class LogGroupKeys(Operations):
    """Operations of CloudWatch Logs."""

    def associate_kms_key(self) -> str:
        """Sets the key of a group, or removes it: the other operation has no parameter for it."""
        group = self.logs_backend.groups.get(self._get_param("logGroupName"))
        if group is None:
            raise aws_refusal("log group")
        group.kms_key_id = self._get_param("kmsKeyId")
        return ""

    disassociate_kms_key = associate_kms_key
