# SPDX-License-Identifier: Apache-2.0
"""Subnets, and the VNICs in them. Subnets lie inside their VCN's blocks, do not overlap, and use the VCN's defaults."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, ip_network
from itertools import islice

from localcloud.oci import kinds, ocids, tenancy
from localcloud.oci.authorization import may_see, names_of
from localcloud.oci.kinds import ResourceKind
from localcloud.oci.oci_errors import conflict_error, missing_parameter, related_not_found
from localcloud.oci.ocids import new_ocid
from localcloud.oci.operations import ApiCall
from localcloud.oci.paging import page_of
from localcloud.oci.services.network.gateways import SERVICE, VERSION
from localcloud.oci.services.network.security import require_cidr_form
from localcloud.oci.tenancy_store import StateStore, StoredResource
from localcloud.server import http
from localcloud.server.api_errors import invalid_parameter
from localcloud.server.http import Json, Reply

NO_IPV6 = "its networks are IPv4 only"
# The first two addresses belong to the network and its router. The last is for broadcasts.
_RESERVED_AT_THE_START = 2
_LIST_BY = ("vnicId", "subnetId", "vlanId")

VNIC = ResourceKind(
    "vnic", "Vnic", SERVICE, f"{VERSION}/vnics", "vnicId", ocids.NETWORK, parent_field="subnetId", verbs=("Get",)
)
PRIVATE_IP = ResourceKind(
    "private-ip", "PrivateIp", SERVICE, f"{VERSION}/privateIps", "privateIpId", ocids.NETWORK,
    parent_field="subnetId", verbs=("Get",),
)  # fmt: skip


def parse_block(cidr: str) -> IPv4Network:
    """Parses a block. InvalidParameter unless it is a /16 to /30 without host bits, as OCI requires."""
    try:
        block = ip_network(cidr)
    except ValueError as error:
        raise invalid_parameter(f"cidrBlock {cidr!r}: {error}") from None
    require_cidr_form("cidrBlock", "CIDR_BLOCK", cidr)
    if not isinstance(block, IPv4Network) or not 16 <= block.prefixlen <= 30:
        raise invalid_parameter(f"cidrBlock {cidr!r} must be an IPv4 block from /16 to /30")
    return block


def parse_separate_blocks(cidrs: Iterable[str]) -> list[IPv4Network]:
    """Parses the blocks of one VCN, which must not overlap."""
    networks = [parse_block(cidr) for cidr in cidrs]
    for index, block in enumerate(networks):
        if any(block.overlaps(other) for other in networks[:index]):
            raise invalid_parameter(f"cidrBlocks overlap: {block}")
    return networks


def attach_vnics(store: StateStore, run: StoredResource, subnet: StoredResource, count: int) -> list[StoredResource]:
    """Gives each node of a run a VNIC, in the order of their ranks. Conflict if the subnet is full.

    A run that starts again keeps its VNICs: its nodes may still know each other by their addresses."""
    held = [vnic for vnic in store.live(VNIC.name, parent=subnet.id) if vnic.body["run"] == run.id]
    if len(held) == count:
        return held
    detach_vnics(store, run.id)
    taken = {item.body["ipAddress"] for item in store.live(PRIVATE_IP.name, parent=subnet.id)}
    block = IPv4Network(subnet.body["cidrBlock"])
    usable = (str(block[number]) for number in range(_RESERVED_AT_THE_START, block.num_addresses - 1))
    addresses = list(islice((address for address in usable if address not in taken), count))
    if len(addresses) < count:
        raise conflict_error(f"The subnet {subnet.id} has {len(addresses)} free addresses, and {count} are needed")
    return [_add_vnic(store, run, subnet, f"{run.name}-{rank}", address) for rank, address in enumerate(addresses)]


def detach_vnics(store: StateStore, run: str) -> None:
    """Removes the VNICs and addresses of a run's nodes."""
    for kind in (VNIC, PRIVATE_IP):
        for item in store.live(kind.name):
            if item.body["run"] == run:
                store.put(item, state=kind.lifecycle.gone, live=False)


def list_private_ips(call: ApiCall) -> Reply:
    query = call.query
    if not any(query.get(name) for name in _LIST_BY):
        raise missing_parameter("one of vnicId and subnetId")
    page = page_of(call.store, PRIVATE_IP.name, query, {"subnetId": "parent"}, live_only=True)
    seen = (item for item in page.items if may_see(call, item))  # not the runs of other teams in this subnet
    return Reply(200, [kinds.render_of_kind(PRIVATE_IP, item) for item in seen], page.headers)


def _add_vnic(
    store: StateStore, run: StoredResource, subnet: StoredResource, name: str, address: str
) -> StoredResource:
    vnic, private_ip = (new_ocid(kind, tenancy.REGION_KEY) for kind in ("vnic", "privateip"))
    common: Json = {
        "availabilityDomain": subnet.body.get("availabilityDomain") or tenancy.AVAILABILITY_DOMAINS[0],
        "compartmentId": run.compartment,
        "displayName": name,
        "subnetId": subnet.id,
        "isPrimary": True,
        "timeCreated": http.format_rfc3339(http.current_moment()),
        "freeformTags": {},
        "definedTags": {},
        "run": run.id,  # OCI's models lack this field, so clients never see it
    }
    interface = {
        **common, "id": vnic, "privateIp": address, "skipSourceDestCheck": False, "nsgIds": [],
        "macAddress": derive_mac_address(address),
    }  # fmt: skip
    inner = {**common, "id": private_ip, "vnicId": vnic, "ipAddress": address}
    attached, _ = (
        store.add(
            StoredResource(body["id"], kind.name, run.compartment, name, kind.lifecycle.ready, body, parent=subnet.id)
        )
        for kind, body in ((VNIC, interface), (PRIVATE_IP, inner))
    )
    return attached


def derive_mac_address(address: str) -> str:
    """A MAC address that is derived from the IP address, so that old ARP entries of neighbours stay correct."""
    return "02:00:17:" + ":".join(f"{octet:02X}" for octet in IPv4Address(address).packed[1:])


def _complete_subnet(call: ApiCall, body: Json) -> Json:
    vcn = call.store.get(body["vcnId"])
    if vcn is None:
        raise related_not_found(f"vcnId {body['vcnId']}")
    cidr = body.get("cidrBlock") or next(iter(body.get("ipv4CidrBlocks", [])), None)
    if cidr is None:
        raise invalid_parameter("one of cidrBlock and ipv4CidrBlocks is required")
    if body.get("ipv4CidrBlocks") not in (None, [cidr]):
        raise invalid_parameter(
            "cidrBlock and ipv4CidrBlocks name more than one block; the local cloud supports one per subnet"
        )
    private = body.get("prohibitPublicIpOnVnic", body.get("prohibitInternetIngress", False))
    label, domain = body.get("dnsLabel"), vcn.body.get("vcnDomainName")
    completed = {
        "routeTableId": vcn.body["defaultRouteTableId"],
        "securityListIds": [vcn.body["defaultSecurityListId"]],
        "dhcpOptionsId": vcn.body["defaultDhcpOptionsId"],
        **body,
        **_subnet_addresses(call, vcn, cidr, body["id"]),
        "prohibitPublicIpOnVnic": private,
        "prohibitInternetIngress": private,
        "virtualRouterMac": f"00:00:17:{zlib.crc32(body['id'].encode()).to_bytes(4, 'big')[1:].hex(':').upper()}",
        **({"subnetDomainName": f"{label}.{domain}"} if label and domain else {}),
    }
    _require_same_vcn(call, completed)
    return completed


def _subnet_addresses(call: ApiCall, vcn: StoredResource, cidr: str, own_id: str) -> Json:
    """The fields that follow from a subnet's block. Raises unless the block is in the VCN and overlaps no subnet."""
    block = parse_block(cidr)
    if not any(block.subnet_of(parse_block(outer)) for outer in vcn.body["cidrBlocks"]):
        raise invalid_parameter(f"cidrBlock {cidr} is not within the VCN's {', '.join(vcn.body['cidrBlocks'])}")
    for other in call.store.live("subnet", parent=vcn.id):
        if other.id != own_id and block.overlaps(parse_block(other.body["cidrBlock"])):
            raise invalid_parameter(
                f"cidrBlock {cidr} overlaps with {other.body['cidrBlock']} of the subnet {other.name}"
            )
    return {"cidrBlock": cidr, "ipv4CidrBlocks": [cidr], "virtualRouterIp": str(block.network_address + 1)}


def _updated_subnet(call: ApiCall, subnet: StoredResource, body: Json) -> Json:
    """Refuses a new block that begins elsewhere, or lacks an address of one of the subnet's VNICs."""
    vcn, cidr, before = call.store.get(subnet.parent), body["cidrBlock"], subnet.body["cidrBlock"]
    if vcn is None or cidr == before:
        return _require_same_vcn(call, body)
    if parse_block(cidr).network_address != parse_block(before).network_address:
        raise invalid_parameter(f"cidrBlock {cidr} must have the same network address as {before}")
    moved = _subnet_addresses(call, vcn, cidr, subnet.id)
    for vnic in call.store.live(VNIC.name, parent=subnet.id):
        if IPv4Address(vnic.body["privateIp"]) not in parse_block(cidr):
            raise conflict_error(
                f"The subnet {subnet.name} ({subnet.id}) cannot have {cidr}: the VNIC {vnic.name} of the run "
                f"{vnic.body['run']} has the address {vnic.body['privateIp']}"
            )
    return _require_same_vcn(call, {**body, **moved})


def _require_same_vcn(call: ApiCall, body: Json) -> Json:
    if not 1 <= len(body["securityListIds"]) <= 5:
        raise invalid_parameter("a subnet has one to five security lists")
    for identifier in (body["routeTableId"], *body["securityListIds"]):
        part = call.store.get(identifier)
        if part is None or part.parent != body["vcnId"]:
            raise related_not_found(f"{identifier} in the VCN {body['vcnId']}")
    return body


def _require_unused(call: ApiCall, subnet: StoredResource) -> None:
    # An accepted run has no VNIC yet, but will get one soon.
    users = call.store.mentioning(subnet.id, ("job-run", "notebook-session"))
    active = [user for user in users if user.kind != "job-run" or user.state in ocids.RUN_ACTIVE]
    if active:
        raise conflict_error(f"The subnet {subnet.id} has VNICs attached, of {names_of(call, active)}")


SUBNET = ResourceKind(
    "subnet", "Subnet", SERVICE, f"{VERSION}/subnets", "subnetId", ocids.NETWORK, parent_field="vcnId",
    references={
        "vcnId": "vcn", "routeTableId": "route-table", "securityListIds": "security-list",
        "dhcpOptionsId": "dhcp-options",
    },
    on_create=_complete_subnet, on_delete=_require_unused, on_update=_updated_subnet,
    unserved=dict.fromkeys(("ipv6CidrBlock", "ipv6CidrBlocks"), NO_IPV6),
    asynchronous=frozenset({"Move"}),
)  # fmt: skip
