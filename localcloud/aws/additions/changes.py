# SPDX-License-Identifier: Apache-2.0
"""Changes that moto refuses, or answers without keeping them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from localcloud.aws.additions import placement, reservations
from localcloud.aws.additions.outside import Handler, ec2_error

# What moto does not know to have tags: the kind of resource, and how its ids begin.
_TAGGED = {"placement-group": "pg", "capacity-reservation": "cr"}
# The peers that a rule of a security group may have, in AWS's words.
_PEERS = {
    "CidrIpv4": "CIDR IPv4", "CidrIpv6": "CIDR IPv6", "PrefixListId": "prefix list id",
    "ReferencedGroupId": "referenced group id",
}  # fmt: skip
# Parameters of ModifySubnetAttribute -> what DescribeSubnets shows.
_NAMES_ON_LAUNCH = {
    "EnableResourceNameDnsAAAARecordOnLaunch.Value": "EnableResourceNameDnsAAAARecord",
    "PrivateDnsHostnameTypeOnLaunch": "HostnameType",
}


# moto looks for a key under the text that a call gives.
_BY_ID_ONLY = ("disable_key", "enable_key", "schedule_key_deletion", "cancel_key_deletion")


def install(response: Any, backend: Any, template: Any, keys: Any) -> None:
    """Once in a process."""
    from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, EC2_RESOURCE_TO_PREFIX

    EC2_RESOURCE_TO_PREFIX.update(_TAGGED)
    EC2_PREFIX_TO_RESOURCE.update({prefix: kind for kind, prefix in _TAGGED.items()})
    # moto shows a copy of the tags that a template was made with.
    template.tags = property(lambda self: self.get_tags(), lambda self, copy: None)
    for name in _BY_ID_ONLY:
        setattr(keys, name, _by_any_id(getattr(keys, name)))
    _look_for_ours(backend)
    _keep_tags_of_templates_apart(backend)
    _change_rules(backend)
    _type_of_endpoints(backend)
    _end_of_gateways(backend)
    _deleted_endpoints_go(backend)
    _attributes_of_subnets(response)


def _by_any_id(original: Callable[..., Any]) -> Callable[..., Any]:
    """A change of a key that is named by its ARN, too."""

    def change(self: Any, key_id: str, *args: Any, **named: Any) -> Any:
        return original(self, self.any_id_to_key_id(key_id), *args, **named)

    return change


def _look_for_ours(backend: Any) -> None:
    original = backend.do_resources_exist

    def exist(self: Any, ids: list[str]) -> bool:
        for identifier in ids:
            if identifier.startswith("pg-"):
                placement.by_id(self, identifier)
            elif identifier.startswith("cr-"):
                reservations.find(self, identifier)
        return bool(original(self, ids))

    backend.do_resources_exist = exist


def _keep_tags_of_templates_apart(backend: Any) -> None:
    """The tags of a template are not among those that it gives to what it starts."""
    original = backend.create_launch_template

    def create(self: Any, name: str, description: str, data: dict[str, Any], tags: dict[str, Any]) -> Any:
        rows = [row for row in data.pop("TagSpecifications", []) if row.get("ResourceType") != "launch-template"]
        return original(self, name, description, {**data, **({"TagSpecifications": rows} if rows else {})}, tags)

    backend.create_launch_template = create


def _change_rules(backend: Any) -> None:
    original = backend.modify_security_group_rules

    def modify(self: Any, group: str, rules: dict[str, dict[str, Any]]) -> None:
        held = self.get_security_group_by_name_or_id(group)
        pairs = [(rule, held.get_rule(identifier)) for identifier, rule in rules.items()] if held else []
        for rule, existing in pairs:
            _check_peer(rule, existing)
        original(self, group, rules)
        for rule, existing in pairs:
            _give_peer(rule, existing)

    backend.modify_security_group_rules = modify


def _check_peer(rule: dict[str, Any], existing: Any) -> None:
    """AWS changes a peer, and never its kind."""
    given = next((kind for kind in _PEERS if rule.get(kind) is not None), None)
    if existing is None or given is None:
        return
    has = {
        "CidrIpv4": existing.cidr_ipv4, "CidrIpv6": existing.cidr_ipv6, "PrefixListId": existing.prefix_list_id,
        "ReferencedGroupId": existing.source_group,
    }  # fmt: skip
    kept = next((kind for kind in _PEERS if has[kind]), given)
    if kept != given:
        raise ec2_error(
            "InvalidParameterValue",
            f"You may not specify a {_PEERS[given]} for an existing {_PEERS[kept]} rule.",
        )


def _give_peer(rule: dict[str, Any], existing: Any) -> None:
    """moto gives a rule another CIDR of IPv4 only."""
    if block := rule.get("CidrIpv6"):
        existing.ip_range["CidrIpv6"] = block
    if prefixes := rule.get("PrefixListId"):
        existing.prefix_list_id = prefixes
    if group := rule.get("ReferencedGroupId"):
        existing.source_group = {**existing.source_group, "GroupId": group}


def _type_of_endpoints(backend: Any) -> None:
    original = backend.create_vpc_endpoint

    def create(self: Any, **named: Any) -> Any:
        return original(self, **{**named, "endpoint_type": named.get("endpoint_type") or "Gateway"})

    backend.create_vpc_endpoint = create


def _end_of_gateways(backend: Any) -> None:
    """A NAT gateway takes its interface with it, and lets go of its address. moto keeps both."""
    original = backend.delete_nat_gateway

    def delete(self: Any, identifier: str) -> Any:
        gateway = original(self, identifier)
        if self.enis.pop(gateway._eni.id, None) is not None:
            let_go_of_addresses(self, {gateway._eni.id})
        return gateway

    backend.delete_nat_gateway = delete


def let_go_of_addresses(backend: Any, interfaces: set[str]) -> None:
    """Elastic addresses of interfaces that end are free again."""
    for address in backend.addresses:
        if address.eni is not None and address.eni.id in interfaces:
            address.eni.public_ip = address.eni = address.instance = address.association_id = None


def _deleted_endpoints_go(backend: Any) -> None:
    """moto describes them as deleted for ever. The real provider waits until AWS knows them no more."""
    original = backend.delete_vpc_endpoints

    def delete(self: Any, vpce_ids: list[str] | None = None) -> None:
        original(self, vpce_ids)
        for identifier in vpce_ids or ():
            self.vpc_end_points.pop(identifier, None)
            self.tags.pop(identifier, None)

    backend.delete_vpc_endpoints = delete


def _attributes_of_subnets(response: Any) -> None:
    original = response.modify_subnet_attribute

    def modify(self: Any) -> Any:
        subnet = self.ec2_backend.get_subnet(self._get_param("SubnetId"))
        for parameter, name in _NAMES_ON_LAUNCH.items():
            if (value := self._get_param(parameter)) is not None:
                subnet.private_dns_name_options_on_launch[name] = value
        return original(self)

    response.modify_subnet_attribute = modify


class KeysOfLogGroups(Handler):
    """Handlers of CloudWatch Logs."""

    def associate_kms_key(self) -> str:
        return _encrypt(self, self._get_param("kmsKeyId"))

    def disassociate_kms_key(self) -> str:
        return _encrypt(self, None)


def _encrypt(self: Any, key: str | None) -> str:
    from moto.logs.exceptions import ResourceNotFoundException

    group = self.logs_backend.groups.get(self._get_param("logGroupName"))
    if group is None:
        raise ResourceNotFoundException()
    group.kms_key_id = key
    return ""
