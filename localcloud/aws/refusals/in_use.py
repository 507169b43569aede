# SPDX-License-Identifier: Apache-2.0
"""Refuses deletions of resources that are in use, and names that are not yet free. catalog/aws_refusals.toml has the
rules, and this module finds what uses a resource."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from catalog.tables import table
from localcloud.aws.aws_errors import Reason, RefusalError
from localcloud.aws.calls import AwsCall
from localcloud.aws.moto_state import moto_backend

log = logging.getLogger("localcloud")


def refuse_deletion_in_use(call: AwsCall) -> None:
    """Refuses a call if a row of the catalog says that its resource or name must be unused, and it is in use."""
    for row in table("aws_refusals")["in_use"]:
        if row["operation"] != call.name:
            continue
        backend = moto_backend(call.service.backend, "aws" if call.service.prefix == "iam" else call.region)
        resource = call.text(row["parameter"])
        if call.name == "ec2.DeleteSecurityGroup" and not resource:  # which may have a name instead
            group = backend.get_security_group_by_name_or_id(call.text("GroupName"))
            resource = str(group.id) if group is not None else ""
        users = [user for kind in row["of"] for user in USERS[kind](backend, resource)]
        if users:
            # Unlike AWS's message, the log says what uses it.
            log.info("refused %s of %s, which is used by %s", call.name, resource, ", ".join(users[:5]))
            message = row["message"].replace("{id}", resource)
            raise RefusalError(Reason.REFUSED, message, row["code"], row.get("status", 400))


def _existing_interfaces(backend: Any) -> Iterator[Any]:
    """The interfaces that exist on AWS. moto also keeps those of deleted gateways and terminated instances."""
    gone = {gateway._eni.id for gateway in backend.nat_gateways.values() if gateway.state == "deleted"}
    for interface in list(backend.enis.values()):
        owner = interface.instance
        ended = owner is not None and owner.state == "terminated" and interface.delete_on_termination
        if interface.id not in gone and not ended:
            yield interface


def _existing_endpoints(backend: Any) -> list[Any]:
    return [one for one in backend.vpc_end_points.values() if one.state != "deleted"]


def _rules_about_group(backend: Any, group: str) -> Iterator[str]:
    """Rules of other groups that name this group. The group's own rules do not count: they are deleted with it."""
    for groups in list(backend.groups.values()):
        for other in list(groups.values()):
            if other.id != group:
                rules = (*other.ingress_rules, *other.egress_rules)
                yield from (rule.id for rule in rules if (rule.source_group or {}).get("GroupId") == group)


def _network_of_default_group(backend: Any, group: str) -> Iterator[str]:
    default = backend.get_security_group_from_id(group)
    yield from [default.vpc_id] if default is not None and default.name == "default" else []


def _owner_of_interface(backend: Any, identifier: str) -> Iterator[str]:
    for interface in _existing_interfaces(backend):
        if interface.id == identifier:
            owners = [interface.instance.id] if interface.instance else []
            gateways = (one.id for one in backend.nat_gateways.values() if one._eni.id == identifier)
            endpoints = (one.id for one in _existing_endpoints(backend) if identifier in one.network_interface_ids)
            yield from (*owners, *gateways, *endpoints)


def _interface_of_address(backend: Any, allocation: str) -> Iterator[str]:
    existing = {one.id for one in _existing_interfaces(backend)}
    for address in backend.addresses:
        if address.allocation_id == allocation and address.eni and address.eni.id in existing:
            yield address.eni.id


def _older_versions_of_policy(backend: Any, arn: str) -> Iterator[str]:
    policy = backend.managed_policies.get(arn)
    versions = policy.versions if policy is not None else ()
    yield from (one.version_id for one in versions if one.version_id != policy.default_version_id)


USERS: Mapping[str, Callable[[Any, str], Iterable[str]]] = {
    "interfaces of subnet": lambda ec2, subnet: (
        one.id for one in _existing_interfaces(ec2) if one.subnet.id == subnet
    ),
    "endpoints of subnet": lambda ec2, subnet: (
        one.id for one in _existing_endpoints(ec2) if subnet in (one.subnet_ids or ())
    ),
    "interfaces of group": lambda ec2, group: (
        one.id for one in _existing_interfaces(ec2) if group in {member.id for member in one.group_set}
    ),
    "endpoints of group": lambda ec2, group: (
        one.id for one in _existing_endpoints(ec2) if group in one.security_group_ids
    ),
    "rules about group": _rules_about_group,
    "network of default group": _network_of_default_group,
    "network of main table": lambda ec2, table: (
        one.vpc_id for one in ec2.route_tables.values() if one.id == table and one.main_association_id
    ),
    "subnets of network": lambda ec2, vpc: (one.id for one in ec2.describe_subnets() if one.vpc_id == vpc),
    "gateways of network": lambda ec2, vpc: (
        one.id for one in ec2.internet_gateways.values() if one.vpc and one.vpc.id == vpc
    ),
    "endpoints of network": lambda ec2, vpc: (one.id for one in _existing_endpoints(ec2) if one.vpc_id == vpc),
    "groups of network": lambda ec2, vpc: (
        one.id for one in dict.get(ec2.groups, vpc, {}).values() if one.name != "default"
    ),
    "route tables of network": lambda ec2, vpc: (
        one.id for one in ec2.route_tables.values() if one.vpc_id == vpc and not one.main_association_id
    ),
    "public addresses of network": lambda ec2, vpc: (
        one.public_ip for one in _existing_interfaces(ec2) if one.subnet.vpc_id == vpc and one.public_ip
    ),
    "owner of interface": _owner_of_interface,
    "interface of address": _interface_of_address,
    "attachments of policy": lambda iam, arn: (
        one.name
        for owners in (iam.users, iam.groups, iam.roles)
        for one in list(owners.values())
        if arn in one.managed_policies
    ),
    "older versions of policy": _older_versions_of_policy,
    "members of group": lambda iam, name: (user.name for user in getattr(iam.groups.get(name), "users", ())),
    "attached policies of group": lambda iam, name: getattr(iam.groups.get(name), "managed_policies", ()),
    "own policies of group": lambda iam, name: getattr(iam.groups.get(name), "policies", ()),
    "groups of user": lambda iam, name: (
        group.name for group in iam.groups.values() if name in {user.name for user in group.users}
    ),
    "access keys of user": lambda iam, name: (
        key.access_key_id for key in getattr(iam.users.get(name), "access_keys", ())
    ),
    "secrets that wait for deletion": lambda secrets, name: (
        one.arn for one in secrets.secrets.values() if one.name == name and one.is_deleted()
    ),
}
