# SPDX-License-Identifier: Apache-2.0
"""Networks: VCNs, subnets, gateways, route tables, security lists and groups."""

from components.oci.types.oci_resource_type import oci_type
from components.oci.types.security_rules import read_rule_of_group, read_rules_of_list
from components.values.resource_types import LostWith, ResourceType, input_names, inputs_in_reviews

CORE_TYPES = (
    oci_type(
        "oci:Core/vcn:Vcn", replaced_by="cidrBlock dnsLabel",
        computed=(
            "byoipv6cidrDetails cidrBlock cidrBlocks definedTags displayName dnsLabel freeformTags "
            "ipv6privateCidrBlocks isIpv6enabled isOracleGuaAllocationEnabled securityAttributes"
        ),
        lost=LostWith(
            "the VCN {name} goes, with whatever else people have made in it: OCI deletes none that is not empty",
            "let the runs in it end first; move what is not the stack's", ("displayName",),
        ),
        changed={
            "compartmentId": "ChangeVcnCompartment GetVcn",
            # Blocks change by one edit at a time. The provider takes it as failed unless its work request names the VCN
            # with the action IN_PROGRESS.
            "cidrBlocks:added": "AddVcnCidr GetWorkRequest GetVcn",
            "cidrBlocks:exchanged": "ModifyVcnCidr GetWorkRequest GetVcn",
            "cidrBlocks:removed": "RemoveVcnCidr GetWorkRequest GetVcn",
        },
        unreached={"IPv6": "AddIpv6VcnCidr RemoveIpv6VcnCidr PatchVcn"}, stand_in={"cidrBlocks": "ListSubnets"},
        empty={
            "byoipv6cidrBlocks": [], "byoipv6cidrDetails": [], "ipv6cidrBlocks": [], "ipv6privateCidrBlocks": [],
            "isIpv6enabled": False, "securityAttributes": {},
        },
        behaviour="network.VcnResource", words="VCN", compared="cidrBlocks", statement_types="virtual-network-family",
        part="network",
        in_reviews=inputs_in_reviews(placed="cidrBlock cidrBlocks compartmentId dnsLabel"),
    ),
    oci_type(
        "oci:Core/subnet:Subnet",
        replaced_by="vcnId availabilityDomain dnsLabel prohibitInternetIngress prohibitPublicIpOnVnic",
        computed=(
            "availabilityDomain cidrBlock definedTags dhcpOptionsId displayName dnsLabel freeformTags ipv4cidrBlocks "
            "ipv6cidrBlock ipv6cidrBlocks prohibitInternetIngress prohibitPublicIpOnVnic routeTableId securityListIds"
        ),
        unordered="securityListIds",
        lost=LostWith(
            "the subnet {name} goes, and OCI deletes none in which a run or anything else has an address",
            "let the runs in it end first, also those of stacks that use it", ("displayName",),
        ),
        changed={"compartmentId": "ChangeSubnetCompartment GetSubnet"},
        unreached={
            "IPv6": "AddIpv6SubnetCidr RemoveIpv6SubnetCidr PatchSubnet",
            "several blocks": "AddIpv4SubnetCidr ModifyIpv4SubnetCidr RemoveIpv4SubnetCidr GetWorkRequest",
        },
        empty={"ipv6cidrBlocks": []}, compared="cidrBlock prohibitPublicIpOnVnic routeTableId securityListIds",
        judged="securityListIds prohibitPublicIpOnVnic routeTableId", part="subnet",
        private_by="prohibitPublicIpOnVnic prohibitInternetIngress",
        in_reviews=inputs_in_reviews(
            placed=(
                "availabilityDomain cidrBlock compartmentId dnsLabel prohibitInternetIngress prohibitPublicIpOnVnic "
                "routeTableId securityListIds vcnId"
            ),
        ),
    ),
    oci_type(
        "oci:Core/securityList:SecurityList", replaced_by="vcnId",
        computed=(
            "definedTags displayName egressSecurityRules.description egressSecurityRules.destinationType "
            "egressSecurityRules.stateless freeformTags ingressSecurityRules.description "
            "ingressSecurityRules.sourceType"
        ),
        unordered="egressSecurityRules ingressSecurityRules", behaviour="network.SecurityListResource",
        compared="ingressSecurityRules egressSecurityRules", judged="ingressSecurityRules egressSecurityRules",
        part="security list", security_rules=read_rules_of_list,
        in_reviews=inputs_in_reviews(judged="egressSecurityRules ingressSecurityRules", placed="compartmentId vcnId"),
    ),
    ResourceType(
        token="oci:Core/defaultSecurityList:DefaultSecurityList", replaced_by=input_names("manageDefaultResourceId"),
        computed=input_names(
            "compartmentId definedTags displayName egressSecurityRules.description "
            "egressSecurityRules.destinationType egressSecurityRules.stateless freeformTags "
            "ingressSecurityRules.description ingressSecurityRules.sourceType"
        ),
        unordered=input_names("egressSecurityRules ingressSecurityRules"),
        part="default security list", security_rules=read_rules_of_list,
    ),
    oci_type(
        "oci:Core/networkSecurityGroup:NetworkSecurityGroup", replaced_by="vcnId",
        computed="definedTags displayName freeformTags", part="security group",
        in_reviews=inputs_in_reviews(placed="compartmentId vcnId"),
    ),
    oci_type(
        "oci:Core/networkSecurityGroupSecurityRule:NetworkSecurityGroupSecurityRule", tags="",
        replaced_by="networkSecurityGroupId",
        computed=(
            "description destination destinationType sourceType stateless udpOptions.destinationPortRange "
            "udpOptions.sourcePortRange"
        ),
        model="SecurityRule", create="AddNetworkSecurityGroupSecurityRules",
        read="ListNetworkSecurityGroupSecurityRules", update="UpdateNetworkSecurityGroupSecurityRules",
        delete="RemoveNetworkSecurityGroupSecurityRules", changed={},
        stand_in={"create": "ListNetworkSecurityGroupSecurityRules"}, ready="", gone="",
        behaviour="network.GroupRuleResource", part="security rule", security_rules=read_rule_of_group,
        in_reviews=inputs_in_reviews(
            judged=(
                "destination destinationType direction icmpOptions networkSecurityGroupId protocol source sourceType "
                "stateless tcpOptions udpOptions"
            ),
        ),
    ),
    oci_type(
        "oci:Core/routeTable:RouteTable", replaced_by="vcnId",
        computed=(
            "definedTags displayName freeformTags routeRules.cidrBlock routeRules.description routeRules.destination "
            "routeRules.destinationType routeRules.routeType"
        ),
        unordered="routeRules", compared="routeRules", judged="routeRules", part="route table",
        in_reviews=inputs_in_reviews(judged="routeRules", placed="compartmentId vcnId"),
    ),
    ResourceType(
        token="oci:Core/defaultRouteTable:DefaultRouteTable", replaced_by=input_names("manageDefaultResourceId"),
        computed=input_names(
            "compartmentId definedTags displayName freeformTags routeRules.cidrBlock routeRules.description "
            "routeRules.destination routeRules.destinationType routeRules.routeType"
        ),
        unordered=input_names("routeRules"), part="default route table",
    ),
    ResourceType(
        token="oci:Core/routeTableAttachment:RouteTableAttachment", replaced_by=input_names("routeTableId subnetId"),
    ),
    oci_type(
        "oci:Core/internetGateway:InternetGateway", replaced_by="vcnId",
        computed="definedTags displayName freeformTags routeTableId", renamed={"enabled": "isEnabled"},
        defaults={"enabled": True}, compared="enabled",
        in_reviews=inputs_in_reviews(placed="compartmentId enabled vcnId"),
    ),
    oci_type(
        "oci:Core/natGateway:NatGateway", replaced_by="vcnId publicIpId",
        computed="blockTraffic definedTags displayName freeformTags publicIpId routeTableId", compared="",
        in_reviews=inputs_in_reviews(placed="blockTraffic compartmentId vcnId"),
    ),
    oci_type(
        "oci:Core/serviceGateway:ServiceGateway", replaced_by="vcnId",
        computed="services.serviceName definedTags displayName freeformTags routeTableId", unordered="services",
        compared="services",
        in_reviews=inputs_in_reviews(placed="compartmentId services vcnId"),
    ),
    ResourceType(
        token="oci:Core/defaultDhcpOptions:DefaultDhcpOptions", replaced_by=input_names("manageDefaultResourceId"),
        computed=input_names(
            "options.searchDomainNames options.serverType compartmentId definedTags displayName domainNameType "
            "freeformTags"
        ),
        unordered=input_names("options"),
    ),
)  # fmt: skip
