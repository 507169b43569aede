# SPDX-License-Identifier: Apache-2.0
"""VCNs, each with its default route table, security list and DHCP options."""

from __future__ import annotations

from localcloud.oci import kinds, ocids, tenancy
from localcloud.oci.kinds import ResourceKind
from localcloud.oci.oci_errors import conflict_error, not_found, related_not_found
from localcloud.oci.ocids import new_ocid
from localcloud.oci.operations import ApiCall
from localcloud.oci.services.network.gateways import SERVICE, VERSION
from localcloud.oci.services.network.security import check_end, check_rule, require_cidr_form, require_few
from localcloud.oci.services.network.subnets import NO_IPV6, parse_block, parse_separate_blocks
from localcloud.oci.tenancy_store import StoredResource
from localcloud.oci.work_requests import add_work_request
from localcloud.server import http
from localcloud.server.api_errors import invalid_parameter
from localcloud.server.http import Json, Reply

_DEFAULTS = {
    "route-table": "defaultRouteTableId",
    "security-list": "defaultSecurityListId",
    "dhcp-options": "defaultDhcpOptionsId",
}
_ANYWHERE = "0.0.0.0/0"
_GATEWAYS = ("internet-gateway", "nat-gateway", "service-gateway")
MAXIMUM_BLOCKS = 5


def _complete_vcn(call: ApiCall, body: Json) -> Json:
    blocks = body.get("cidrBlocks") or [body.get("cidrBlock")]
    if blocks == [None]:
        raise invalid_parameter("one of cidrBlock and cidrBlocks is required")
    parse_separate_blocks(blocks)
    defaults = {name: new_ocid(kind.replace("-", ""), tenancy.REGION_KEY) for kind, name in _DEFAULTS.items()}
    label = body.get("dnsLabel")
    domain = {"vcnDomainName": f"{label}.oraclevcn.com"} if label else {}
    return {**body, "cidrBlock": blocks[0], "cidrBlocks": blocks, **domain, **defaults}


def _add_defaults(call: ApiCall, vcn: StoredResource) -> None:
    contents: dict[str, Json] = {
        "route-table": {"routeRules": []},
        "security-list": {
            "ingressSecurityRules": [
                _ingress_rule("6", _ANYWHERE, tcpOptions={"destinationPortRange": {"min": 22, "max": 22}}),
                _ingress_rule("1", _ANYWHERE, icmpOptions={"type": 3, "code": 4}),
                _ingress_rule("1", vcn.body["cidrBlock"], icmpOptions={"type": 3}),
            ],
            "egressSecurityRules": [
                {"destination": _ANYWHERE, "destinationType": "CIDR_BLOCK", "protocol": "all", "isStateless": False}
            ],
        },
        "dhcp-options": {
            "options": [{"type": "DomainNameServer", "serverType": "VcnLocalPlusInternet", "customDnsServers": []}]
        },
    }
    for kind, content in contents.items():
        name = f"Default {kind.replace('-', ' ').title()} for {vcn.name}"
        body = {
            "id": vcn.body[_DEFAULTS[kind]],
            "compartmentId": vcn.compartment,
            "vcnId": vcn.id,
            "displayName": name,
            "timeCreated": http.format_rfc3339(http.current_moment()),
            "freeformTags": {},
            "definedTags": {},
            **content,
        }
        call.store.add(StoredResource(body["id"], kind, vcn.compartment, name, "AVAILABLE", body, parent=vcn.id))


def _ingress_rule(protocol: str, source: str, **options: Json) -> Json:
    return {"protocol": protocol, "source": source, "sourceType": "CIDR_BLOCK", "isStateless": False, **options}


def _remove_defaults(call: ApiCall, vcn: StoredResource) -> None:
    for kind, name in _DEFAULTS.items():
        default = call.store.get(vcn.body[name])
        if default and default.live:
            kinds.remove_resource(BY_NAME[kind], call, default)


def _require_not_default(call: ApiCall, resource: StoredResource) -> None:
    vcn = call.store.get(resource.parent)
    if vcn and resource.id in (vcn.body[name] for name in _DEFAULTS.values()):
        raise conflict_error(
            f"The {resource.kind} {resource.id} is a default of its VCN and is deleted only with the VCN"
        )


def _complete_route_table(call: ApiCall, body: Json) -> Json:
    require_few("routeRules", body.get("routeRules", []))
    for rule in body.get("routeRules", []):
        target = call.store.get(rule["networkEntityId"])
        if target is None or not target.live or target.parent != body["vcnId"]:
            raise related_not_found(f"networkEntityId {rule['networkEntityId']}")
        if target.kind not in (*_GATEWAYS, "private-ip"):
            raise invalid_parameter(f"networkEntityId {target.id} is a {target.kind}, not a gateway")
        if not rule.get("destination") and not rule.get("cidrBlock"):
            raise invalid_parameter("each route rule needs a destination")
    completed = []
    for rule in body.get("routeRules", []):
        destination, kind = rule.get("destination") or rule["cidrBlock"], rule.get("destinationType", "CIDR_BLOCK")
        check_end("destination", kind, destination)
        require_cidr_form("destination", kind, destination)
        cidr = {"cidrBlock": destination} if kind == "CIDR_BLOCK" else {}
        completed.append({**rule, **cidr, "destination": destination, "destinationType": kind, "routeType": "STATIC"})
    return {**body, "routeRules": completed}


def _complete_security_list(call: ApiCall, body: Json) -> Json:
    completed = {}
    for name, end in (("ingressSecurityRules", "source"), ("egressSecurityRules", "destination")):
        completed[name] = [{f"{end}Type": "CIDR_BLOCK", "isStateless": False, **rule} for rule in body.get(name, [])]
        require_few(name, completed[name])
        for rule in completed[name]:
            check_rule(rule, end)
            require_cidr_form(end, str(rule[f"{end}Type"] or "CIDR_BLOCK"), str(rule[end]))
    return {**body, **completed}


_IN_VCN = {"vcnId": "vcn"}
_IPV6 = ("isIpv6Enabled", "isOracleGuaAllocationEnabled", "ipv6PrivateCidrBlocks", "byoipv6CidrDetails")
VCN = ResourceKind(
    "vcn", "Vcn", SERVICE, f"{VERSION}/vcns", "vcnId", ocids.NETWORK, on_create=_complete_vcn,
    after_create=_add_defaults, on_delete=_remove_defaults, asynchronous=frozenset({"Move"}),
    unserved=dict.fromkeys(_IPV6, NO_IPV6),
    held_by=("subnet", "route-table", "security-list", "dhcp-options", "network-security-group", *_GATEWAYS),
)  # fmt: skip
ROUTE_TABLE = ResourceKind(
    "route-table", "RouteTable", SERVICE, f"{VERSION}/routeTables", "rtId", ocids.NETWORK, parent_field="vcnId",
    references=_IN_VCN, held_by=("subnet", *_GATEWAYS), on_create=_complete_route_table, on_delete=_require_not_default,
    on_update=lambda call, resource, body: _complete_route_table(call, body),
)  # fmt: skip
SECURITY_LIST = ResourceKind(
    "security-list", "SecurityList", SERVICE, f"{VERSION}/securityLists", "securityListId", ocids.NETWORK,
    parent_field="vcnId", references=_IN_VCN, held_by=("subnet",), on_create=_complete_security_list,
    on_delete=_require_not_default,
    on_update=lambda call, resource, body: _complete_security_list(call, body),
)  # fmt: skip
DHCP_OPTIONS = ResourceKind(
    "dhcp-options", "DhcpOptions", SERVICE, f"{VERSION}/dhcps", "dhcpId", ocids.NETWORK, plural="DhcpOptions",
    parent_field="vcnId", create_details="CreateDhcpDetails", update_details="UpdateDhcpDetails",
    references=_IN_VCN, held_by=("subnet",), on_delete=_require_not_default,
)  # fmt: skip
BY_NAME = {kind.name: kind for kind in (ROUTE_TABLE, SECURITY_LIST, DHCP_OPTIONS)}


def add_vcn_cidr(call: ApiCall) -> Reply:
    vcn = kinds.find_settled(VCN, call)
    return _keep_blocks(call, vcn, [*vcn.body["cidrBlocks"], call.details()["cidrBlock"]])


def modify_vcn_cidr(call: ApiCall) -> Reply:
    vcn, details = kinds.find_settled(VCN, call), call.details()
    old, new = details["originalCidrBlock"], details["newCidrBlock"]
    _require_block(vcn, old)
    return _keep_blocks(call, vcn, [new if block == old else block for block in vcn.body["cidrBlocks"]])


def remove_vcn_cidr(call: ApiCall) -> Reply:
    vcn, gone = kinds.find_settled(VCN, call), call.details()["cidrBlock"]
    _require_block(vcn, gone)
    return _keep_blocks(call, vcn, [block for block in vcn.body["cidrBlocks"] if block != gone])


def _require_block(vcn: StoredResource, block: str) -> None:
    if block not in vcn.body["cidrBlocks"]:
        raise not_found(f"the block {block} of the VCN")


def _keep_blocks(call: ApiCall, vcn: StoredResource, blocks: list[str]) -> Reply:
    if not 1 <= len(blocks) <= MAXIMUM_BLOCKS:
        raise invalid_parameter(f"a VCN has one to {MAXIMUM_BLOCKS} blocks")
    networks = parse_separate_blocks(blocks)
    if left_out := [
        f"{subnet.name} {subnet.body['cidrBlock']} ({subnet.id})"
        for subnet in call.store.live("subnet", parent=vcn.id)
        if not any(parse_block(subnet.body["cidrBlock"]).subnet_of(block) for block in networks)
    ]:
        raise conflict_error(f"The VCN {vcn.name} has subnets outside of {', '.join(blocks)}: {', '.join(left_out)}")
    until = http.current_moment() + call.cloud.faults.seconds("transition", call.operation.name)
    body = {**vcn.body, "cidrBlock": blocks[0], "cidrBlocks": blocks}
    changed = call.store.put(vcn, body=body, settling="UPDATING", settles_at=until)
    # The action stays IN_PROGRESS after success, and Oracle's provider looks for exactly this one.
    return Reply(
        202, headers={"etag": changed.etag} | add_work_request(call, "UPDATE_VCN", "vcn", "IN_PROGRESS", changed)
    )
