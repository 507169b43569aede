# SPDX-License-Identifier: Apache-2.0
"""Core networking: VCNs and the resources in them."""

from __future__ import annotations

from localcloud.oci import kinds
from localcloud.oci.operations import ApiOperation
from localcloud.oci.services.network import gateways, security, subnets, vcns
from localcloud.oci.services.network.gateways import SERVICE, VERSION

KINDS = (
    vcns.VCN, vcns.ROUTE_TABLE, vcns.SECURITY_LIST, vcns.DHCP_OPTIONS, subnets.SUBNET, security.NSG,
    gateways.INTERNET_GATEWAY, gateways.NAT_GATEWAY, gateways.SERVICE_GATEWAY,
    subnets.VNIC, subnets.PRIVATE_IP,
)  # fmt: skip


def network_operations() -> list[ApiOperation]:
    rules = f"{VERSION}/networkSecurityGroups/{{networkSecurityGroupId}}"
    attach = f"{VERSION}/serviceGateways/{{serviceGatewayId}}/actions"
    vcn = f"{VERSION}/vcns/{{vcnId}}/actions"
    prefix = "NetworkSecurityGroupSecurityRules"
    rows = (
        ("ListServices", "GET", f"{VERSION}/services", gateways.list_services, ""),
        ("GetService", "GET", f"{VERSION}/services/{{serviceId}}", gateways.get_service, ""),
        ("AttachServiceId", "POST", f"{attach}/attachService", gateways.attach_service, "ServiceIdRequestDetails"),
        ("DetachServiceId", "POST", f"{attach}/detachService", gateways.detach_service, "ServiceIdRequestDetails"),
        (f"List{prefix}", "GET", f"{rules}/securityRules", security.list_rules, ""),
        (f"Add{prefix}", "POST", f"{rules}/actions/addSecurityRules", security.add_rules, f"Add{prefix}Details"),
        (
            f"Update{prefix}",
            "POST",
            f"{rules}/actions/updateSecurityRules",
            security.update_rules,
            f"Update{prefix}Details",
        ),
        (
            f"Remove{prefix}",
            "POST",
            f"{rules}/actions/removeSecurityRules",
            security.remove_rules,
            f"Remove{prefix}Details",
        ),
        ("ListPrivateIps", "GET", f"{VERSION}/privateIps", subnets.list_private_ips, ""),
        ("AddVcnCidr", "POST", f"{vcn}/addCidr", vcns.add_vcn_cidr, "AddVcnCidrDetails"),
        ("ModifyVcnCidr", "POST", f"{vcn}/modifyCidr", vcns.modify_vcn_cidr, "ModifyVcnCidrDetails"),
        ("RemoveVcnCidr", "POST", f"{vcn}/removeCidr", vcns.remove_vcn_cidr, "RemoveVcnCidrDetails"),
        ("ListNetworkSecurityGroupVnics", "GET", f"{rules}/vnics", security.list_vnics, ""),
    )
    return [
        *(row for kind in KINDS for row in kinds.kind_operations(kind)),
        *(ApiOperation(name, method, path, handler, SERVICE, details) for name, method, path, handler, details in rows),
    ]
