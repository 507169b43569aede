# SPDX-License-Identifier: Apache-2.0
"""Core networking: VCNs and what is in them."""

from __future__ import annotations

from localcloud.api import kinds
from localcloud.api.operations import ApiOperation
from localcloud.api.services.network import blocks, gateways, nsgs, subnets, vcns, vnics
from localcloud.api.services.network.common import SERVICE, VERSION

KINDS = (
    vcns.VCN, vcns.ROUTE_TABLE, vcns.SECURITY_LIST, vcns.DHCP_OPTIONS, subnets.SUBNET, nsgs.NSG,
    gateways.INTERNET_GATEWAY, gateways.NAT_GATEWAY, gateways.SERVICE_GATEWAY,
    vnics.VNIC, vnics.PRIVATE_IP,
)  # fmt: skip


def operations() -> list[ApiOperation]:
    rules = f"{VERSION}/networkSecurityGroups/{{networkSecurityGroupId}}"
    attach = f"{VERSION}/serviceGateways/{{serviceGatewayId}}/actions"
    vcn = f"{VERSION}/vcns/{{vcnId}}/actions"
    prefix = "NetworkSecurityGroupSecurityRules"
    rows = (
        ("ListServices", "GET", f"{VERSION}/services", gateways.list_services, ""),
        ("GetService", "GET", f"{VERSION}/services/{{serviceId}}", gateways.get_service, ""),
        ("AttachServiceId", "POST", f"{attach}/attachService", gateways.attach, "ServiceIdRequestDetails"),
        ("DetachServiceId", "POST", f"{attach}/detachService", gateways.detach, "ServiceIdRequestDetails"),
        (f"List{prefix}", "GET", f"{rules}/securityRules", nsgs.list_rules, ""),
        (f"Add{prefix}", "POST", f"{rules}/actions/addSecurityRules", nsgs.add_rules, f"Add{prefix}Details"),
        (
            f"Update{prefix}",
            "POST",
            f"{rules}/actions/updateSecurityRules",
            nsgs.update_rules,
            f"Update{prefix}Details",
        ),
        (
            f"Remove{prefix}",
            "POST",
            f"{rules}/actions/removeSecurityRules",
            nsgs.remove_rules,
            f"Remove{prefix}Details",
        ),
        ("ListPrivateIps", "GET", f"{VERSION}/privateIps", vnics.list_private_ips, ""),
        ("AddVcnCidr", "POST", f"{vcn}/addCidr", blocks.add, "AddVcnCidrDetails"),
        ("ModifyVcnCidr", "POST", f"{vcn}/modifyCidr", blocks.modify, "ModifyVcnCidrDetails"),
        ("RemoveVcnCidr", "POST", f"{vcn}/removeCidr", blocks.remove, "RemoveVcnCidrDetails"),
        ("ListNetworkSecurityGroupVnics", "GET", f"{rules}/vnics", nsgs.list_vnics, ""),
    )
    return [
        *(row for kind in KINDS for row in kinds.operations(kind)),
        *(ApiOperation(name, method, path, handler, SERVICE, details) for name, method, path, handler, details in rows),
    ]
