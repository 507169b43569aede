# SPDX-License-Identifier: Apache-2.0
"""Networks: VPCs, subnets, gateways, addresses, endpoints and security groups."""

from collections.abc import Mapping

from localcloud.aws.plugin.rows import (
    Added,
    AwsRow,
    Change,
    Read,
    arn,
    ec2,
    read_by_filter,
    read_by_id,
    tagged,
    unused_read,
)
from localcloud.aws.plugin.rows import words as names

_ON_LAUNCH = (
    "Subnets[].merge(@, {privateDnsHostnameTypeOnLaunch: PrivateDnsNameOptionsOnLaunch.HostnameType, "
    "enableResourceNameDnsARecordOnLaunch: PrivateDnsNameOptionsOnLaunch.EnableResourceNameDnsARecord, "
    "enableResourceNameDnsAaaaRecordOnLaunch: PrivateDnsNameOptionsOnLaunch.EnableResourceNameDnsAAAARecord}) | [0]"
)
_FLAGS = names(
    "mapPublicIpOnLaunch assignIpv6AddressOnCreation enableDns64 enableResourceNameDnsARecordOnLaunch "
    "enableResourceNameDnsAaaaRecordOnLaunch"
)
_ATTRIBUTES = names("enableDnsHostnames enableDnsSupport enableNetworkAddressUsageMetrics")
_VPC, _SUBNET = {"VpcId": "{id}"}, {"SubnetId": "{id}"}
_EIP, _ENDPOINT = {"AllocationId": "{id}"}, {"VpcEndpointId": "{id}"}
_EIP_TARGETS = {"instance": "InstanceId", "networkInterface": "NetworkInterfaceId"}
_ASSOCIATED = "Addresses[?AssociationId=='{id}'] | [0]"


def _attribute(name: str) -> Read:
    member = name[:1].upper() + name[1:]
    return Read("DescribeVpcAttribute", {"VpcId": "{id}", "Attribute": name}, f"{{{member}: {member}.Value}}")


def _interfaces(name: str) -> Read:
    """A call before a deletion: the real provider looks for interfaces that services of AWS left behind."""
    return unused_read("DescribeNetworkInterfaces", {"Filters": [{"Name": name, "Values": ["{id}"]}]})


def _rule(direction: str) -> AwsRow:
    return tagged(
        "security-group-rule",
        "securityGroupId ipProtocol cidrIpv4 cidrIpv6 prefixListId referencedSecurityGroupId fromPort toPort "
        "description",
        "arn securityGroupRuleId",
        create=f"AuthorizeSecurityGroup{direction}",
        created="SecurityGroupRules[0]",
        id="{SecurityGroupRuleId}",
        reads=(read_by_id("DescribeSecurityGroupRules", "SecurityGroupRuleIds", "SecurityGroupRules[0]"),),
        delete=f"RevokeSecurityGroup{direction}",
        delete_with={"GroupId": "{securityGroupId}", "SecurityGroupRuleIds": ["{id}"]},
        renamed={"referencedSecurityGroupId": "ReferencedGroupId"},
        model_paths={
            "securityGroupId": "GroupId",
            "referencedSecurityGroupId": "ReferencedGroupInfo.GroupId",
            "arn": "SecurityGroupRuleArn",
        },
        taken_codes=frozenset({"InvalidPermission.Duplicate"}),
        behaviour="groups.GroupRuleResource",
    )


ROWS: Mapping[str, AwsRow] = {
    "aws:ec2/vpc:Vpc": tagged(
        "vpc",
        "cidrBlock instanceTenancy assignGeneratedIpv6CidrBlock enableDnsHostnames enableDnsSupport "
        "enableNetworkAddressUsageMetrics",
        "ownerId dhcpOptionsId mainRouteTableId defaultRouteTableId defaultSecurityGroupId defaultNetworkAclId",
        create="CreateVpc",
        created="Vpc",
        id="{VpcId}",
        reads=(
            read_by_id("DescribeVpcs", "VpcIds", "Vpcs[0]"),
            *(_attribute(name) for name in _ATTRIBUTES[:2]),
            read_by_filter(
                "DescribeRouteTables",
                "RouteTables[].{mainRouteTableId: RouteTableId, defaultRouteTableId: RouteTableId} | [0]",
                {"vpc-id": "{id}", "association.main": "true"},
            ),
            read_by_filter(
                "DescribeSecurityGroups",
                "SecurityGroups[].{defaultSecurityGroupId: GroupId} | [0]",
                {"vpc-id": "{id}", "group-name": "default"},
            ),
            read_by_filter(
                "DescribeNetworkAcls",
                "NetworkAcls[].{defaultNetworkAclId: NetworkAclId} | [0]",
                {"vpc-id": "{id}", "default": "true"},
            ),
        ),
        delete="DeleteVpc",
        delete_with=_VPC,
        changes=(Change("ModifyVpcAttribute", _ATTRIBUTES, _VPC, value="Value"),),
        renamed={"assignGeneratedIpv6CidrBlock": "AmazonProvidedIpv6CidrBlock"},
        unset={"enableDnsSupport": True, "enableNetworkAddressUsageMetrics": False},
        computed=arn("vpc"),
        state="State",
        ready=frozenset({"available"}),
    ),
    "aws:ec2/subnet:Subnet": tagged(
        "subnet",
        "vpcId cidrBlock availabilityZone availabilityZoneId ipv6CidrBlock ipv6Native mapPublicIpOnLaunch "
        "assignIpv6AddressOnCreation enableDns64 enableResourceNameDnsARecordOnLaunch "
        "enableResourceNameDnsAaaaRecordOnLaunch privateDnsHostnameTypeOnLaunch",
        "arn ownerId",
        create="CreateSubnet",
        created="Subnet",
        id="{SubnetId}",
        reads=(read_by_id("DescribeSubnets", "SubnetIds", _ON_LAUNCH),),
        delete="DeleteSubnet",
        delete_with=_SUBNET,
        before_delete=(_interfaces("subnet-id"),),
        changes=(
            Change("ModifySubnetAttribute", _FLAGS, _SUBNET, value="Value"),
            Change("ModifySubnetAttribute", ("privateDnsHostnameTypeOnLaunch",), _SUBNET),
        ),
        model_paths={"arn": "SubnetArn"},
        unset=dict.fromkeys(_FLAGS, False),
        state="State",
        ready=frozenset({"available"}),
    ),
    "aws:ec2/internetGateway:InternetGateway": tagged(
        "internet-gateway",
        "vpcId",
        "ownerId",
        create="CreateInternetGateway",
        created="InternetGateway",
        id="{InternetGatewayId}",
        reads=(read_by_id("DescribeInternetGateways", "InternetGatewayIds", "InternetGateways[0]"),),
        delete="DeleteInternetGateway",
        delete_with={"InternetGatewayId": "{id}"},
        changes=(
            Change(
                "AttachInternetGateway",
                ("vpcId",),
                {"InternetGatewayId": "{id}"},
                undo="DetachInternetGateway",
                undo_with={"InternetGatewayId": "{id}", "VpcId": "{vpcId}"},
                exclusive=True,
            ),
        ),
        model_paths={"vpcId": "Attachments[0].VpcId"},
        computed=arn("internet-gateway"),
    ),
    "aws:ec2/natGateway:NatGateway": tagged(
        "natgateway",
        "subnetId allocationId connectivityType privateIp vpcId",
        "associationId networkInterfaceId publicIp",
        create="CreateNatGateway",
        created="NatGateway",
        id="{NatGatewayId}",
        reads=(read_by_id("DescribeNatGateways", "NatGatewayIds", "NatGateways[0]"),),
        delete="DeleteNatGateway",
        delete_with={"NatGatewayId": "{id}"},
        renamed={"privateIp": "PrivateIpAddress"},
        model_paths={
            "allocationId": "NatGatewayAddresses[0].AllocationId",
            "associationId": "NatGatewayAddresses[0].AssociationId",
            "networkInterfaceId": "NatGatewayAddresses[0].NetworkInterfaceId",
            "privateIp": "NatGatewayAddresses[0].PrivateIp",
            "publicIp": "NatGatewayAddresses[0].PublicIp",
        },
        state="State",
        state_reason="FailureMessage",
        ready=frozenset({"available"}),
        failed=frozenset({"failed"}),
        gone=frozenset({"deleted"}),
    ),
    "aws:ec2/eip:Eip": tagged(
        "elastic-ip",
        "domain address instance networkInterface networkBorderGroup publicIpv4Pool",
        "allocationId associationId privateIp publicIp",
        create="AllocateAddress",
        id="{AllocationId}",
        reads=(
            read_by_id("DescribeAddresses", "AllocationIds", "Addresses[0]"),
            unused_read("DescribeAddressesAttribute", {"AllocationIds": ["{id}"], "Attribute": "domain-name"}),
        ),
        delete="ReleaseAddress",
        delete_with=_EIP,
        changes=(
            Change(
                "AssociateAddress",
                ("instance", "networkInterface"),
                _EIP,
                names=_EIP_TARGETS,
                undo="DisassociateAddress",
                undo_with={"AssociationId": "{associationId}"},
                exclusive=True,
            ),
        ),
        model_paths={**_EIP_TARGETS, "privateIp": "PrivateIpAddress"},
        computed=arn("elastic-ip"),
    ),
    "aws:ec2/eipAssociation:EipAssociation": ec2(
        "allocationId instanceId networkInterfaceId privateIpAddress publicIp allowReassociation",
        create="AssociateAddress",
        id="{AssociationId}",
        extra=frozenset({"allowReassociation"}),
        reads=(read_by_filter("DescribeAddresses", _ASSOCIATED, {"association-id": "{id}"}),),
        delete="DisassociateAddress",
        delete_with={"AssociationId": "{id}"},
        behaviour="routes.AddressAssociationResource",
    ),
    "aws:ec2/vpcEndpoint:VpcEndpoint": tagged(
        "vpc-endpoint",
        "vpcId serviceName vpcEndpointType routeTableIds subnetIds securityGroupIds policy privateDnsEnabled "
        "ipAddressType autoAccept",
        "ownerId state prefixListId cidrBlocks networkInterfaceIds requesterManaged",
        create="CreateVpcEndpoint",
        created="VpcEndpoint",
        id="{VpcEndpointId}",
        reads=(
            read_by_id("DescribeVpcEndpoints", "VpcEndpointIds", "VpcEndpoints[0]"),
            read_by_filter(
                "DescribePrefixLists",
                "PrefixLists[].{prefixListId: PrefixListId, cidrBlocks: Cidrs} | [0]",
                {"prefix-list-name": "{ServiceName}"},
            ),
        ),
        delete="DeleteVpcEndpoints",
        delete_with={"VpcEndpointIds": ["{id}"]},
        extra=frozenset({"autoAccept"}),
        defaults={"vpcEndpointType": "Gateway"},
        changes=(
            Change(
                "ModifyVpcEndpoint",
                ("policy",),
                _ENDPOINT,
                undo="ModifyVpcEndpoint",
                undo_with={**_ENDPOINT, "ResetPolicy": True},
            ),
            Change("ModifyVpcEndpoint", ("privateDnsEnabled", "ipAddressType"), _ENDPOINT),
        ),
        lists=(
            Added("ModifyVpcEndpoint", "routeTableIds", _ENDPOINT, "AddRouteTableIds", "RemoveRouteTableIds"),
            Added("ModifyVpcEndpoint", "subnetIds", _ENDPOINT, "AddSubnetIds", "RemoveSubnetIds"),
            Added("ModifyVpcEndpoint", "securityGroupIds", _ENDPOINT, "AddSecurityGroupIds", "RemoveSecurityGroupIds"),
        ),
        renamed={"policy": "PolicyDocument"},
        model_paths={"securityGroupIds": "Groups[].GroupId"},
        unset={"privateDnsEnabled": False},
        computed=arn("vpc-endpoint"),
        state="State",
        ready=frozenset({"available", "Available", "pendingAcceptance"}),
        gone=frozenset({"deleted", "Deleted"}),
        failed=frozenset({"failed", "rejected", "expired"}),
    ),
    "aws:ec2/securityGroup:SecurityGroup": tagged(
        "security-group",
        "name namePrefix description vpcId ingress egress revokeRulesOnDelete",
        "ownerId",
        create="CreateSecurityGroup",
        id="{GroupId}",
        reads=(read_by_id("DescribeSecurityGroups", "GroupIds", "SecurityGroups[0]"),),
        delete="DeleteSecurityGroup",
        delete_with={"GroupId": "{id}"},
        before_delete=(_interfaces("group-id"),),
        named="name",
        longest_name=255,
        defaults={"description": "Managed by Pulumi"},
        extra=frozenset({"ingress", "egress", "revokeRulesOnDelete"}),
        renamed={"name": "GroupName"},
        computed=arn("security-group"),
        taken_codes=frozenset({"InvalidGroup.Duplicate"}),
        behaviour="groups.SecurityGroupResource",
    ),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": _rule("Ingress"),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": _rule("Egress"),
}
