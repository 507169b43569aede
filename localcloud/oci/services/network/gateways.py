# SPDX-License-Identifier: Apache-2.0
"""Internet, NAT and service gateways, and the services that a service gateway reaches."""

from __future__ import annotations

import zlib
from ipaddress import IPv4Address

from localcloud.oci import kinds, ocids, tenancy
from localcloud.oci.kinds import ResourceKind
from localcloud.oci.oci_errors import already_exists, not_found, related_not_found
from localcloud.oci.ocids import fixed_ocid, new_ocid
from localcloud.oci.operations import ApiCall
from localcloud.server.api_errors import invalid_parameter
from localcloud.server.http import Json, Reply

# The service and the paths of all modules of core networking.
SERVICE = "core"
VERSION = "/20160918"
_KEY = tenancy.REGION_KEY
# One row per service label: CIDR label, and name.
_LABELS = (
    (f"all-{_KEY}-services-in-oracle-services-network", f"All {_KEY.upper()} Services In Oracle Services Network"),
    (f"oci-{_KEY}-objectstorage", f"OCI {_KEY.upper()} Object Storage"),
)
# The addresses of this cloud's services inside a VCN. They are from a block for documentation that nobody uses.
SERVICES_ADDRESS, OBJECT_STORAGE_ADDRESS = "198.51.100.1", "198.51.100.2"
_NAT_ADDRESSES = int(IPv4Address("192.0.2.0"))  # from a block for documentation that nobody uses


def gateway_services() -> list[Json]:
    return [
        {"id": fixed_ocid("service", cidr, _KEY), "cidrBlock": cidr, "name": name, "description": name}
        for cidr, name in _LABELS
    ]


def service_addresses(label: str) -> tuple[str, ...]:
    """The addresses that a service label stands for; none for an unknown label."""
    addresses = (SERVICES_ADDRESS, OBJECT_STORAGE_ADDRESS), (OBJECT_STORAGE_ADDRESS,)
    return dict(zip((cidr for cidr, _ in _LABELS), addresses, strict=True)).get(label, ())


def list_services(call: ApiCall) -> Reply:
    return Reply(200, gateway_services())


def get_service(call: ApiCall) -> Reply:
    for service in gateway_services():
        if service["id"] == call.params["serviceId"]:
            return Reply(200, service)
    raise not_found("service")


def _name_services(requested: list[Json]) -> list[Json]:
    names = {service["id"]: service["name"] for service in gateway_services()}
    for request in requested:
        if request["serviceId"] not in names:
            raise related_not_found(f"serviceId {request['serviceId']}")
    if len(requested) > 1:
        raise invalid_parameter("a service gateway has one service label: Object Storage, or all services")
    return [{"serviceId": item["serviceId"], "serviceName": names[item["serviceId"]]} for item in requested]


def _require_first(call: ApiCall, kind: str, body: Json) -> Json:
    """The body of a gateway, if its VCN has no other one of this kind."""
    if call.store.live(kind, parent=body["vcnId"]):
        raise already_exists(f"A {kind} of the VCN {body['vcnId']}")
    return body


def _nat_gateway(call: ApiCall, body: Json) -> Json:
    address = IPv4Address(_NAT_ADDRESSES + zlib.crc32(body["id"].encode()) % 254 + 1)
    return {"publicIpId": new_ocid("publicip", _KEY), **body, "natIp": str(address)}


_IN_VCN = {"vcnId": "vcn", "routeTableId": "route-table"}
INTERNET_GATEWAY = ResourceKind(
    "internet-gateway", "InternetGateway", SERVICE, f"{VERSION}/internetGateways", "igId", ocids.NETWORK,
    parent_field="vcnId", references=_IN_VCN, held_by=("route-table",),
    on_create=lambda call, body: _require_first(call, "internet-gateway", body),
)  # fmt: skip
NAT_GATEWAY = ResourceKind(
    "nat-gateway", "NatGateway", SERVICE, f"{VERSION}/natGateways", "natGatewayId", ocids.NETWORK,
    parent_field="vcnId", references=_IN_VCN, held_by=("route-table",), defaults={"blockTraffic": False},
    on_create=_nat_gateway,
)  # fmt: skip
SERVICE_GATEWAY = ResourceKind(
    "service-gateway", "ServiceGateway", SERVICE, f"{VERSION}/serviceGateways", "serviceGatewayId", ocids.NETWORK,
    parent_field="vcnId", references=_IN_VCN, held_by=("route-table",), defaults={"blockTraffic": False},
    on_create=lambda call, body: {
        **_require_first(call, "service-gateway", body), "services": _name_services(body["services"])
    },
    on_update=lambda call, resource, body: {**body, "services": _name_services(body["services"])},
)  # fmt: skip


def attach_service(call: ApiCall) -> Reply:
    return _change_services(call, attached=True)


def detach_service(call: ApiCall) -> Reply:
    return _change_services(call, attached=False)


def _change_services(call: ApiCall, attached: bool) -> Reply:
    gateway = kinds.find_living(SERVICE_GATEWAY, call)
    gateway.require_etag(call.if_match)
    service = call.details()["serviceId"]
    others = [item for item in gateway.body["services"] if item["serviceId"] != service]
    wanted = [*others, {"serviceId": service}] if attached else others
    changed = call.store.put(gateway, body={**gateway.body, "services": _name_services(wanted)})
    return Reply(200, kinds.render_of_kind(SERVICE_GATEWAY, changed), {"etag": changed.etag})
