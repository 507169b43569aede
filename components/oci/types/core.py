# SPDX-License-Identifier: Apache-2.0
"""Networks: VCNs, subnets, gateways, route tables, security lists and groups."""

from components.oci.types.conventions import calls, oci_type
from components.values.resource_types import LostWith, ResourceType, input_names

CORE_TYPES = (
    oci_type(
        "oci:Core/vcn:Vcn",
        replaced_by=input_names("cidrBlock dnsLabel"),
        computed=input_names(
            "byoipv6cidrDetails cidrBlock cidrBlocks definedTags displayName dnsLabel freeformTags "
            "ipv6privateCidrBlocks isIpv6enabled isOracleGuaAllocationEnabled securityAttributes"
        ),
        lost=LostWith(
            "the VCN {name} goes, with whatever else people have made in it: OCI deletes none that is not empty",
            "let the runs in it end first; move what is not the stack's",
            ("displayName",),
        ),
        changed={
            "compartmentId": calls("ChangeVcnCompartment GetVcn"),
            # Blocks change by one edit at a time. The provider takes it as failed unless its work request names the VCN
            # with the action IN_PROGRESS.
            "cidrBlocks:added": calls("AddVcnCidr GetWorkRequest GetVcn"),
            "cidrBlocks:exchanged": calls("ModifyVcnCidr GetWorkRequest GetVcn"),
            "cidrBlocks:removed": calls("RemoveVcnCidr GetWorkRequest GetVcn"),
        },
        unreached={"IPv6": calls("AddIpv6VcnCidr RemoveIpv6VcnCidr PatchVcn")},
        stand_in={"cidrBlocks": calls("ListSubnets")},
        empty={
            "byoipv6cidrBlocks": [],
            "byoipv6cidrDetails": [],
            "ipv6cidrBlocks": [],
            "ipv6privateCidrBlocks": [],
            "isIpv6enabled": False,
            "securityAttributes": {},
        },
        behaviour="network.VcnResource",
    ),
    oci_type(
        "oci:Core/subnet:Subnet",
        replaced_by=input_names("vcnId availabilityDomain dnsLabel prohibitInternetIngress prohibitPublicIpOnVnic"),
        computed=input_names(
            "availabilityDomain cidrBlock definedTags dhcpOptionsId displayName dnsLabel freeformTags "
            "ipv4cidrBlocks ipv6cidrBlock ipv6cidrBlocks prohibitInternetIngress prohibitPublicIpOnVnic "
            "routeTableId securityListIds"
        ),
        unordered=input_names("securityListIds"),
        lost=LostWith(
            "the subnet {name} goes, and OCI deletes none in which a run or anything else has an address",
            "let the runs in it end first, also those of stacks that use it",
            ("displayName",),
        ),
        changed={"compartmentId": calls("ChangeSubnetCompartment GetSubnet")},
        unreached={
            "IPv6": calls("AddIpv6SubnetCidr RemoveIpv6SubnetCidr PatchSubnet"),
            "several blocks": calls("AddIpv4SubnetCidr ModifyIpv4SubnetCidr RemoveIpv4SubnetCidr GetWorkRequest"),
        },
        empty={"ipv6cidrBlocks": []},
    ),
    oci_type(
        "oci:Core/securityList:SecurityList",
        replaced_by=input_names("vcnId"),
        computed=input_names(
            "definedTags displayName egressSecurityRules.description egressSecurityRules.destinationType "
            "egressSecurityRules.stateless freeformTags ingressSecurityRules.description "
            "ingressSecurityRules.sourceType"
        ),
        unordered=input_names("egressSecurityRules ingressSecurityRules"),
        behaviour="network.SecurityListResource",
    ),
    ResourceType(
        token="oci:Core/defaultSecurityList:DefaultSecurityList",
        replaced_by=input_names("manageDefaultResourceId"),
        computed=input_names(
            "compartmentId definedTags displayName egressSecurityRules.description "
            "egressSecurityRules.destinationType egressSecurityRules.stateless freeformTags "
            "ingressSecurityRules.description ingressSecurityRules.sourceType"
        ),
        unordered=input_names("egressSecurityRules ingressSecurityRules"),
    ),
    oci_type(
        "oci:Core/networkSecurityGroup:NetworkSecurityGroup",
        replaced_by=input_names("vcnId"),
        computed=input_names("definedTags displayName freeformTags"),
    ),
    oci_type(
        "oci:Core/networkSecurityGroupSecurityRule:NetworkSecurityGroupSecurityRule",
        tags="",
        replaced_by=input_names("networkSecurityGroupId"),
        computed=input_names(
            "description destination destinationType sourceType stateless udpOptions.destinationPortRange "
            "udpOptions.sourcePortRange"
        ),
        model="SecurityRule",
        create=calls("AddNetworkSecurityGroupSecurityRules"),
        read=calls("ListNetworkSecurityGroupSecurityRules"),
        update=calls("UpdateNetworkSecurityGroupSecurityRules"),
        delete=calls("RemoveNetworkSecurityGroupSecurityRules"),
        changed={},
        stand_in={"create": calls("ListNetworkSecurityGroupSecurityRules")},
        ready=frozenset(),
        gone=frozenset(),
        behaviour="network.GroupRuleResource",
    ),
    oci_type(
        "oci:Core/routeTable:RouteTable",
        replaced_by=input_names("vcnId"),
        computed=input_names(
            "definedTags displayName freeformTags routeRules.cidrBlock routeRules.description "
            "routeRules.destination routeRules.destinationType routeRules.routeType"
        ),
        unordered=input_names("routeRules"),
    ),
    ResourceType(
        token="oci:Core/defaultRouteTable:DefaultRouteTable",
        replaced_by=input_names("manageDefaultResourceId"),
        computed=input_names(
            "compartmentId definedTags displayName freeformTags routeRules.cidrBlock routeRules.description "
            "routeRules.destination routeRules.destinationType routeRules.routeType"
        ),
        unordered=input_names("routeRules"),
    ),
    ResourceType(
        token="oci:Core/routeTableAttachment:RouteTableAttachment",
        replaced_by=input_names("routeTableId subnetId"),
    ),
    oci_type(
        "oci:Core/internetGateway:InternetGateway",
        replaced_by=input_names("vcnId"),
        computed=input_names("definedTags displayName freeformTags routeTableId"),
        renamed={"enabled": "isEnabled"},
        defaults={"enabled": True},
    ),
    oci_type(
        "oci:Core/natGateway:NatGateway",
        replaced_by=input_names("vcnId publicIpId"),
        computed=input_names("blockTraffic definedTags displayName freeformTags publicIpId routeTableId"),
    ),
    oci_type(
        "oci:Core/serviceGateway:ServiceGateway",
        replaced_by=input_names("vcnId"),
        computed=input_names("services.serviceName definedTags displayName freeformTags routeTableId"),
        unordered=input_names("services"),
    ),
    ResourceType(
        token="oci:Core/defaultDhcpOptions:DefaultDhcpOptions",
        replaced_by=input_names("manageDefaultResourceId"),
        computed=input_names(
            "options.searchDomainNames options.serverType compartmentId definedTags displayName domainNameType "
            "freeformTags"
        ),
        unordered=input_names("options"),
    ),
)
