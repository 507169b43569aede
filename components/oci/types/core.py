# SPDX-License-Identifier: Apache-2.0
"""Networks: VCNs, subnets, gateways, route tables, security lists and groups."""

from components.values.resource_types import LostWith, ResourceType, input_names

CORE_TYPES = (
    ResourceType(
        token="oci:Core/vcn:Vcn",
        tags="freeformTags",
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
    ),
    ResourceType(
        token="oci:Core/subnet:Subnet",
        tags="freeformTags",
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
    ),
    ResourceType(
        token="oci:Core/securityList:SecurityList",
        tags="freeformTags",
        replaced_by=input_names("vcnId"),
        computed=input_names(
            "definedTags displayName egressSecurityRules.description egressSecurityRules.destinationType "
            "egressSecurityRules.stateless freeformTags ingressSecurityRules.description "
            "ingressSecurityRules.sourceType"
        ),
        unordered=input_names("egressSecurityRules ingressSecurityRules"),
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
    ResourceType(
        token="oci:Core/networkSecurityGroup:NetworkSecurityGroup",
        tags="freeformTags",
        replaced_by=input_names("vcnId"),
        computed=input_names("definedTags displayName freeformTags"),
    ),
    ResourceType(
        token="oci:Core/networkSecurityGroupSecurityRule:NetworkSecurityGroupSecurityRule",
        replaced_by=input_names("networkSecurityGroupId"),
        computed=input_names(
            "description destination destinationType sourceType stateless udpOptions.destinationPortRange "
            "udpOptions.sourcePortRange"
        ),
    ),
    ResourceType(
        token="oci:Core/routeTable:RouteTable",
        tags="freeformTags",
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
    ResourceType(
        token="oci:Core/internetGateway:InternetGateway",
        tags="freeformTags",
        replaced_by=input_names("vcnId"),
        computed=input_names("definedTags displayName freeformTags routeTableId"),
    ),
    ResourceType(
        token="oci:Core/natGateway:NatGateway",
        tags="freeformTags",
        replaced_by=input_names("vcnId publicIpId"),
        computed=input_names("blockTraffic definedTags displayName freeformTags publicIpId routeTableId"),
    ),
    ResourceType(
        token="oci:Core/serviceGateway:ServiceGateway",
        tags="freeformTags",
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
