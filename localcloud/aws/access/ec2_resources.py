# SPDX-License-Identifier: Apache-2.0
"""The EC2 resources that a call refers to, in whatever parameter. An id itself says which type it is of. Other values
are found by the name of their parameter, as rows of catalog/aws_calls.toml say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from catalog.tables import table
from localcloud.aws.account import ACCOUNT
from localcloud.aws.calls import AwsCall
from localcloud.aws.moto_state import moto_backend

_NUMBER = re.compile(r"\.\d+$")
_ID = re.compile(r"([a-z]+(?:-[a-z]+)*)-[0-9a-f]{8,17}", re.ASCII)
# Creating a template needs no permission for resources in its data. Launches from it do.
_NOT_REFERENCES = ("Filter.", "TagSpecification.", "TagSpecifications.", "Tag.", "LaunchTemplateData.")


def named_resources(call: AwsCall) -> list[str]:
    """The ARNs of the existing resources that the call's parameters name."""
    return list(
        dict.fromkeys(
            arn for name, value in call.parameters.items() for arn in _arns_of_parameter(call, name, str(value))
        )
    )


def _arns_of_parameter(call: AwsCall, name: str, value: str) -> Iterator[str]:
    rows = table("aws_calls")["ec2"]
    member = _NUMBER.sub("", name).rpartition(".")[2]
    if not value or name.startswith(_NOT_REFERENCES) or member in rows["texts"]:
        return
    if name == rows["new_name"].get(call.operation):
        return
    if value.startswith(f"arn:aws:ec2:{call.region}:"):
        yield value
    if has_id := _ID.fullmatch(value) is not None:
        yield from arns_by_id(call.region, value)
    # A name may look like an id.
    if member in rows["named"] and not (has_id and member.endswith("Id")):
        yield arn_of(call.region, rows["named"][member], value)
    if member == "GroupName" and ("Placement" in name or "PlacementGroup" in call.operation):
        yield arn_of(call.region, "placement-group", value)
    else:
        backend = moto_backend("ec2", call.region)
        if member == "LaunchTemplateName":
            yield arn_of(call.region, "launch-template", backend.launch_template_name_to_ids.get(value, value))
        elif member in table("aws_calls")["ec2"]["group_names"]:  # moto takes an id there, too
            groups = (group for groups in list(backend.groups.values()) for group in groups.values())
            yield from (arn_of(call.region, "security-group", group.id) for group in groups if group.name == value)
        elif member == "PublicIp":
            named = (address for address in _elastic_addresses(backend) if address.public_ip == value)
            yield from (arn_of(call.region, "elastic-ip", address.allocation_id) for address in named)


def arn_of(region: str, kind: str, identifier: str) -> str:
    account = "" if kind in ("image", "snapshot") else ACCOUNT
    return f"arn:aws:ec2:{region}:{account}:{kind}/{identifier}"


def arns_by_id(region: str, identifier: str) -> Iterator[str]:
    """The ARN of the resource with an id. An association belongs to the resources that it joins. A type that no row
    names is `unknown`: only statements on everything allow it."""
    backend = moto_backend("ec2", region)
    matched = _ID.fullmatch(identifier)
    prefix = matched[1] if matched else identifier.partition("-")[0]
    rows = table("aws_calls")["ec2"]
    if prefix in rows["associations"]:
        owners = list(_association_owners(backend, identifier)) or [("unknown", identifier)]
        yield from (arn_of(region, kind, owner) for kind, owner in owners)
    elif prefix == "pg":  # its ARN has the name
        groups = backend.__dict__.get("trainyard_placement_groups", {})
        names = (str(name) for name, row in groups.items() if row["GroupId"] == identifier)
        yield arn_of(region, "placement-group", next(names, identifier))
    # A rule or a route that names one of AWS's own prefix lists is judged by its group or table only.
    elif getattr(backend.managed_prefix_lists.get(identifier), "owner_id", "") != "AWS":
        yield arn_of(region, rows["prefixes"].get(prefix, "unknown"), identifier)


def _association_owners(backend: Any, association: str) -> Iterator[tuple[str, str]]:
    """The type and the id of each resource that an association or attachment joins, except for its network."""
    joined = [
        *(("elastic-ip", one.allocation_id, [one.association_id]) for one in _elastic_addresses(backend)),
        *(("route-table", one.id, one.all_associations_ids) for one in backend.route_tables.values()),
        *(("network-acl", one.id, one._associations) for one in backend.network_acls.values()),
        *(("instance", one, [profile.association_id])
          for one, profile in backend.iam_instance_profile_associations.items()),
        *(("network-interface", one.id, [one.attachment_id]) for one in backend.enis.values()),
        *(("instance", one.instance.id, [one.attachment_id]) for one in backend.enis.values() if one.instance),
        *(("vpc", one.id, one._cidr_block_association_set) for one in backend.vpcs.values()),
        *(("subnet", one.id, one.ipv6_cidr_block_associations)
          for subnets in backend.subnets.values() for one in subnets.values()),
    ]  # fmt: skip
    return ((kind, identifier) for kind, identifier, associations in joined if association in associations)


def _elastic_addresses(backend: Any) -> list[Any]:
    addresses = backend.addresses
    return list(addresses.values() if isinstance(addresses, Mapping) else addresses)
