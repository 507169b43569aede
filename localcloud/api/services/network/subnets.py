# SPDX-License-Identifier: Apache-2.0
"""Subnets. They lie inside their VCN's blocks, do not overlap, and use the VCN's defaults."""

from __future__ import annotations

import zlib
from ipaddress import IPv4Address

from localcloud.api import lifecycles
from localcloud.api.authorization import names_of
from localcloud.api.errors import conflict, invalid, related_not_found
from localcloud.api.http import Json
from localcloud.api.kinds import ResourceKind
from localcloud.api.operations import ApiCall
from localcloud.api.services.network.common import NO_IPV6, SERVICE, VERSION, parse_block
from localcloud.api.services.network.vnics import VNIC
from localcloud.api.store import StoredResource


def _subnet(call: ApiCall, body: Json) -> Json:
    vcn = call.store.get(body["vcnId"])
    if vcn is None:
        raise related_not_found(f"vcnId {body['vcnId']}")
    cidr = body.get("cidrBlock") or next(iter(body.get("ipv4CidrBlocks", [])), None)
    if cidr is None:
        raise invalid("one of cidrBlock and ipv4CidrBlocks is required")
    if body.get("ipv4CidrBlocks") not in (None, [cidr]):
        raise invalid("cidrBlock and ipv4CidrBlocks name more than one block; the local cloud supports one per subnet")
    private = body.get("prohibitPublicIpOnVnic", body.get("prohibitInternetIngress", False))
    label, domain = body.get("dnsLabel"), vcn.body.get("vcnDomainName")
    completed = {
        "routeTableId": vcn.body["defaultRouteTableId"],
        "securityListIds": [vcn.body["defaultSecurityListId"]],
        "dhcpOptionsId": vcn.body["defaultDhcpOptionsId"],
        **body,
        **_addresses(call, vcn, cidr, body["id"]),
        "prohibitPublicIpOnVnic": private,
        "prohibitInternetIngress": private,
        "virtualRouterMac": f"00:00:17:{zlib.crc32(body['id'].encode()) & 0xFFFFFF:06X}",
        **({"subnetDomainName": f"{label}.{domain}"} if label and domain else {}),
    }
    _require_same_vcn(call, completed)
    return completed


def _addresses(call: ApiCall, vcn: StoredResource, cidr: str, own_id: str) -> Json:
    """The fields that follow from a subnet's block. Raises unless the block is in the VCN and overlaps no subnet."""
    block = parse_block(cidr)
    if not any(block.subnet_of(parse_block(outer)) for outer in vcn.body["cidrBlocks"]):
        raise invalid(f"cidrBlock {cidr} is not within the VCN's {', '.join(vcn.body['cidrBlocks'])}")
    for other in call.store.live("subnet", parent=vcn.id):
        if other.id != own_id and block.overlaps(parse_block(other.body["cidrBlock"])):
            raise invalid(f"cidrBlock {cidr} overlaps with {other.body['cidrBlock']} of the subnet {other.name}")
    return {"cidrBlock": cidr, "ipv4CidrBlocks": [cidr], "virtualRouterIp": str(block.network_address + 1)}


def _updated(call: ApiCall, subnet: StoredResource, body: Json) -> Json:
    """Refuses a new block that begins elsewhere, or lacks an address of one of the subnet's VNICs."""
    vcn, cidr, before = call.store.get(subnet.parent), body["cidrBlock"], subnet.body["cidrBlock"]
    if vcn is None or cidr == before:
        return _require_same_vcn(call, body)
    if parse_block(cidr).network_address != parse_block(before).network_address:
        raise invalid(f"cidrBlock {cidr} must have the same network address as {before}")
    moved = _addresses(call, vcn, cidr, subnet.id)
    for vnic in call.store.live(VNIC.name, parent=subnet.id):
        if IPv4Address(vnic.body["privateIp"]) not in parse_block(cidr):
            raise conflict(
                f"The subnet {subnet.name} ({subnet.id}) cannot have {cidr}: the VNIC {vnic.name} of the run "
                f"{vnic.body['run']} has the address {vnic.body['privateIp']}"
            )
    return _require_same_vcn(call, {**body, **moved})


def _require_same_vcn(call: ApiCall, body: Json) -> Json:
    if not 1 <= len(body["securityListIds"]) <= 5:
        raise invalid("a subnet has one to five security lists")
    for identifier in (body["routeTableId"], *body["securityListIds"]):
        part = call.store.get(identifier)
        if part is None or part.parent != body["vcnId"]:
            raise related_not_found(f"{identifier} in the VCN {body['vcnId']}")
    return body


def _require_unused(call: ApiCall, subnet: StoredResource) -> None:
    # An accepted run has no VNIC yet, but will get one soon.
    users = call.store.mentioning(subnet.id, ("job-run", "notebook-session"))
    active = [user for user in users if user.kind != "job-run" or user.state in lifecycles.RUN_ACTIVE]
    if active:
        raise conflict(f"The subnet {subnet.id} has VNICs attached, of {names_of(call, active)}")


SUBNET = ResourceKind(
    "subnet", "Subnet", SERVICE, f"{VERSION}/subnets", "subnetId", lifecycles.NETWORK, parent_field="vcnId",
    references={
        "vcnId": "vcn", "routeTableId": "route-table", "securityListIds": "security-list",
        "dhcpOptionsId": "dhcp-options",
    },
    on_create=_subnet, on_delete=_require_unused, on_update=_updated,
    unserved=dict.fromkeys(("ipv6CidrBlock", "ipv6CidrBlocks"), NO_IPV6),
    asynchronous=frozenset({"Move"}),
)  # fmt: skip
