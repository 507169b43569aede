# SPDX-License-Identifier: Apache-2.0
"""What others can make beside a stack's resources that gives access to them, or that moves or deletes what they have.
A drift looks for each of these, as no stack declares them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

_NOTHING: Mapping[str, str] = MappingProxyType({})
BUCKET, VCN = "oci:ObjectStorage/bucket:Bucket", "oci:Core/vcn:Vcn"
_GROUP_RULE = "oci:Core/networkSecurityGroupSecurityRule:NetworkSecurityGroupSecurityRule"


class LiveBeside(NamedTuple):
    """`token`: the type of what is found. `beside`: the type of the stack's resource."""

    token: str
    beside: str
    service: str
    operation: str
    # The parameters of the call: inputs of the stack's resource, or `id`.
    within: tuple[str, ...]
    named: Mapping[str, str]
    # A template of the SDK's model that is `found`, and of inputs of the stack's resource, `its`. Empty: what follows
    # from the resource says it.
    words: str
    # Program's input -> field of the model, where they differ, and program's input -> input of the stack's resource.
    renamed: Mapping[str, str] = _NOTHING
    given: Mapping[str, str] = _NOTHING
    # What is below each that is found.
    below: tuple["LiveBeside", ...] = ()


def _in_vcn(token: str, operation: str, words: str, renamed: Mapping[str, str] = _NOTHING) -> LiveBeside:
    """What lies in the stack's VCN, as far as it is in the VCN's compartment."""
    return LiveBeside(
        token, VCN, "core", operation, ("compartmentId",), {"vcn_id": "id"}, words, renamed, {"vcnId": "id"}
    )


LIVE_BESIDE = (
    _in_vcn(
        "oci:Core/internetGateway:InternetGateway", "list_internet_gateways",
        "internet gateway {found.display_name} in the stack's VCN", {"enabled": "is_enabled"},
    ),
    # A review takes every `Subnet` as one of the stack's nodes.
    LiveBeside(
        "oci:Core/otherSubnet:OtherSubnet", VCN, "core", "list_subnets", ("compartmentId",), _NOTHING,
        "subnet {found.display_name} ({found.cidr_block}) in the stack's VCN",
    ),
    _in_vcn(
        "oci:Core/natGateway:NatGateway", "list_nat_gateways",
        "NAT gateway {found.display_name} in the stack's VCN",
    ),
    _in_vcn(
        "oci:Core/localPeeringGateway:LocalPeeringGateway", "list_local_peering_gateways",
        "local peering gateway {found.display_name} in the stack's VCN, to a VCN with {found.peer_advertised_cidr}",
    ),
    _in_vcn(
        "oci:Core/drgAttachment:DrgAttachment", "list_drg_attachments",
        "attachment {found.display_name} of the stack's VCN to the dynamic routing gateway {found.drg_id}",
    ),
    LiveBeside(
        "oci:Core/networkSecurityGroup:NetworkSecurityGroup", VCN, "core", "list_network_security_groups", (),
        {"compartment_id": "compartmentId", "vcn_id": "id"},
        "network security group {found.display_name} in the stack's VCN",
        below=(
            LiveBeside(
                _GROUP_RULE, "", "core", "list_network_security_group_security_rules", ("id",), _NOTHING, "",
                given={"networkSecurityGroupId": "id"},
            ),
        ),
    ),
    LiveBeside(
        "oci:ObjectStorage/preauthrequest:Preauthrequest", BUCKET, "object_storage", "list_preauthenticated_requests",
        ("namespace", "name"), _NOTHING,
        "pre-authenticated request {found.name} on the bucket {its[name]}: {found.access_type}, for whoever has its "
        "address, until {found.time_expires:%Y-%m-%d}",
        renamed={"object": "object_name"}, given={"bucket": "name"},
    ),
    LiveBeside(
        "oci:ObjectStorage/replicationPolicy:ReplicationPolicy", BUCKET, "object_storage", "list_replication_policies",
        ("namespace", "name"), _NOTHING,
        "replication policy {found.name}: it copies the bucket {its[name]} to the bucket "
        "{found.destination_bucket_name} in {found.destination_region_name}",
    ),
    LiveBeside(
        "oci:ObjectStorage/objectLifecyclePolicy:ObjectLifecyclePolicy", BUCKET, "object_storage",
        "get_object_lifecycle_policy", ("namespace", "name"), _NOTHING,
        "lifecycle rule {found.name} of the bucket {its[name]}: {found.action} after {found.time_amount} "
        "{found.time_unit}",
    ),
)  # fmt: skip
