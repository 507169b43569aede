# SPDX-License-Identifier: Apache-2.0
"""VNICs and their private addresses. The nodes of living job runs have them in their subnet."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

from localcloud.api import clock, kinds, lifecycles, tenancy
from localcloud.api.authorization import may_see
from localcloud.api.errors import conflict, missing_parameter
from localcloud.api.http import Json, Reply
from localcloud.api.kinds import ResourceKind
from localcloud.api.ocids import new_ocid
from localcloud.api.operations import ApiCall
from localcloud.api.paging import page_of
from localcloud.api.services.network.common import SERVICE, VERSION
from localcloud.api.store import StateStore, StoredResource

# The first two addresses belong to the network and its router. The last is for broadcasts.
_RESERVED_AT_THE_START = 2
_LIST_BY = ("vnicId", "subnetId", "vlanId")

VNIC = ResourceKind(
    "vnic", "Vnic", SERVICE, f"{VERSION}/vnics", "vnicId", lifecycles.NETWORK, parent_field="subnetId", verbs=("Get",)
)
PRIVATE_IP = ResourceKind(
    "private-ip", "PrivateIp", SERVICE, f"{VERSION}/privateIps", "privateIpId", lifecycles.NETWORK,
    parent_field="subnetId", verbs=("Get",),
)  # fmt: skip


def attach(store: StateStore, run: StoredResource, subnet: StoredResource, count: int) -> list[StoredResource]:
    """Gives each node of a run a VNIC, in the order of their ranks. Conflict if the subnet is full.

    A run that starts again keeps its VNICs: its nodes may still know each other by their addresses."""
    held = [vnic for vnic in store.live(VNIC.name, parent=subnet.id) if vnic.body["run"] == run.id]
    if len(held) == count:
        return held
    detach(store, run.id)
    addresses = _free_addresses(store, subnet, count)
    return [_add(store, run, subnet, f"{run.name}-{rank}", address) for rank, address in enumerate(addresses)]


def detach(store: StateStore, run: str) -> None:
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
    seen = (item for item in page.items if may_see(call, item))  # other teams may have runs in this subnet
    return Reply(200, [kinds.render(PRIVATE_IP, item) for item in seen], page.headers)


def _free_addresses(store: StateStore, subnet: StoredResource, count: int) -> list[str]:
    taken = {item.body["ipAddress"] for item in store.live(PRIVATE_IP.name, parent=subnet.id)}
    block = IPv4Network(subnet.body["cidrBlock"])
    addresses: list[str] = []
    for number in range(_RESERVED_AT_THE_START, block.num_addresses - 1):
        if len(addresses) == count:
            return addresses
        if (address := str(block[number])) not in taken:
            addresses.append(address)
    if len(addresses) < count:
        raise conflict(f"The subnet {subnet.id} has {len(addresses)} free addresses, and {count} are needed")
    return addresses


def _add(store: StateStore, run: StoredResource, subnet: StoredResource, name: str, address: str) -> StoredResource:
    vnic, private_ip = (new_ocid(kind, tenancy.REGION_KEY) for kind in ("vnic", "privateip"))
    common: Json = {
        "availabilityDomain": subnet.body.get("availabilityDomain") or tenancy.AVAILABILITY_DOMAINS[0],
        "compartmentId": run.compartment,
        "displayName": name,
        "subnetId": subnet.id,
        "isPrimary": True,
        "timeCreated": clock.rfc3339(clock.now()),
        "freeformTags": {},
        "definedTags": {},
        "run": run.id,  # OCI's models lack this field, so clients never see it
    }
    interface = {
        **common, "id": vnic, "privateIp": address, "skipSourceDestCheck": False, "nsgIds": [],
        "macAddress": mac_address(address),
    }  # fmt: skip
    inner = {**common, "id": private_ip, "vnicId": vnic, "ipAddress": address}
    attached, _ = (
        store.add(
            StoredResource(body["id"], kind.name, run.compartment, name, kind.lifecycle.ready, body, parent=subnet.id)
        )
        for kind, body in ((VNIC, interface), (PRIVATE_IP, inner))
    )
    return attached


def mac_address(address: str) -> str:
    """A MAC address derived from the IP address, so that stale ARP entries of neighbours stay correct."""
    return "02:00:17:" + ":".join(f"{octet:02X}" for octet in IPv4Address(address).packed[1:])
