# SPDX-License-Identifier: Apache-2.0
"""Networks: VPCs, subnets, gateways, endpoints and addresses."""

from components.aws.types.aws_resource_type import (
    Change,
    Creation,
    Deletion,
    ListChange,
    Read,
    RealProvider,
    ec2_arn,
    ec2_type,
    read_by_filter,
    read_by_id,
    unused_read,
)
from components.aws.types.security_groups import read_left_interfaces
from components.values.resource_types import LostWith, StandingCost

_ON_LAUNCH = (
    "Subnets[].merge(@, {privateDnsHostnameTypeOnLaunch: PrivateDnsNameOptionsOnLaunch.HostnameType, "
    "enableResourceNameDnsARecordOnLaunch: PrivateDnsNameOptionsOnLaunch.EnableResourceNameDnsARecord, "
    "enableResourceNameDnsAaaaRecordOnLaunch: PrivateDnsNameOptionsOnLaunch.EnableResourceNameDnsAAAARecord}) | [0]"
)
_FLAGS = (
    "mapPublicIpOnLaunch", "assignIpv6AddressOnCreation", "enableDns64", "enableResourceNameDnsARecordOnLaunch",
    "enableResourceNameDnsAaaaRecordOnLaunch",
)  # fmt: skip
_ATTRIBUTES = ("enableDnsHostnames", "enableDnsSupport", "enableNetworkAddressUsageMetrics")
_VPC, _SUBNET = {"VpcId": "{id}"}, {"SubnetId": "{id}"}
_EIP, _ENDPOINT = {"AllocationId": "{id}"}, {"VpcEndpointId": "{id}"}
_EIP_TARGETS = {"instance": "InstanceId", "networkInterface": "NetworkInterfaceId"}
_ENDPOINT_LISTS = {
    "routeTableIds": "RouteTableIds", "subnetIds": "SubnetIds", "securityGroupIds": "SecurityGroupIds"
}  # fmt: skip
_ASSOCIATED = "Addresses[?AssociationId=='{id}'] | [0]"


def read_vpc_attribute(name: str) -> Read:
    member = name[:1].upper() + name[1:]
    return Read("DescribeVpcAttribute", {"VpcId": "{id}", "Attribute": name}, f"{{{member}: {member}.Value}}")


NETWORK_TYPES = (
    ec2_type(
        "aws:ec2/vpc:Vpc", "vpc",
        "cidrBlock instanceTenancy assignGeneratedIpv6CidrBlock enableDnsHostnames enableDnsSupport "
        "enableNetworkAddressUsageMetrics",
        "ownerId dhcpOptionsId mainRouteTableId defaultRouteTableId defaultSecurityGroupId defaultNetworkAclId",
        renamed={"assignGeneratedIpv6CidrBlock": "AmazonProvidedIpv6CidrBlock"},
        unset={"enableDnsSupport": True, "enableNetworkAddressUsageMetrics": False}, computed_outputs=ec2_arn("vpc"),
        replaced_by="cidrBlock instanceTenancy", computed="assignGeneratedIpv6CidrBlock cidrBlock enableDnsHostnames",
        create=Creation("CreateVpc", "{VpcId}", "Vpc"),
        reads=(
            read_by_id("DescribeVpcs", "VpcIds", "Vpcs[0]"), *(read_vpc_attribute(name) for name in _ATTRIBUTES[:2]),
            read_by_filter(
                "DescribeRouteTables",
                "RouteTables[].{mainRouteTableId: RouteTableId, defaultRouteTableId: RouteTableId} | [0]",
                {"vpc-id": "{id}", "association.main": "true"},
            ),
            read_by_filter(
                "DescribeSecurityGroups", "SecurityGroups[].{defaultSecurityGroupId: GroupId} | [0]",
                {"vpc-id": "{id}", "group-name": "default"},
            ),
            read_by_filter(
                "DescribeNetworkAcls", "NetworkAcls[].{defaultNetworkAclId: NetworkAclId} | [0]",
                {"vpc-id": "{id}", "default": "true"},
            ),
        ),
        changes=(Change("ModifyVpcAttribute", _ATTRIBUTES, _VPC, value="Value"),),
        delete=Deletion("DeleteVpc", _VPC),
        state="State", ready="available",
        provider=RealProvider(
            "ec2/vpc_.go", calls={"assignGeneratedIpv6CidrBlock": "AssociateVpcCidrBlock DisassociateVpcCidrBlock"},
            waits={"delete": "DependencyViolation"},
            unreached={"addresses of IPAM": "GetIpamPoolAllocations", "a tenancy that changes": "ModifyVpcTenancy"},
        ),
        lost=LostWith(
            "the VPC {name} goes with everything in it: machines first, and AWS deletes none that holds what others "
            "made",
            "let the runs end first; move what is not the stack's",
        ),
    ),
    ec2_type(
        "aws:ec2/subnet:Subnet", "subnet",
        "vpcId cidrBlock availabilityZone availabilityZoneId ipv6CidrBlock ipv6Native mapPublicIpOnLaunch "
        "assignIpv6AddressOnCreation enableDns64 enableResourceNameDnsARecordOnLaunch "
        "enableResourceNameDnsAaaaRecordOnLaunch privateDnsHostnameTypeOnLaunch",
        "arn ownerId", model_paths={"arn": "SubnetArn"}, unset=dict.fromkeys(_FLAGS, False),
        replaced_by="vpcId cidrBlock availabilityZone availabilityZoneId ipv6CidrBlock ipv6Native",
        computed="availabilityZone availabilityZoneId privateDnsHostnameTypeOnLaunch",
        create=Creation("CreateSubnet", "{SubnetId}", "Subnet"),
        reads=(read_by_id("DescribeSubnets", "SubnetIds", _ON_LAUNCH),),
        changes=(
            Change("ModifySubnetAttribute", _FLAGS, _SUBNET, value="Value"),
            Change("ModifySubnetAttribute", ("privateDnsHostnameTypeOnLaunch",), _SUBNET),
        ),
        delete=Deletion("DeleteSubnet", _SUBNET, (read_left_interfaces("subnet-id"),)),
        state="State", ready="available",
        # Interfaces that Lambda, Comprehend and DMS have left there are removed first.
        provider=RealProvider(
            "ec2/vpc_subnet.go", waits={"delete": "DependencyViolation"},
            unreached={
                "interfaces of Lambda, Comprehend and DMS": "DetachNetworkInterface DeleteNetworkInterface",
                "IPv6": "AssociateSubnetCidrBlock DisassociateSubnetCidrBlock",
            },
        ),
        lost=LostWith(
            "the subnet {name} goes, and AWS deletes none while a machine or an endpoint is in it: all of them go "
            "first",
            "let the runs end first; checkpoints in the bucket stay",
        ),
    ),
    ec2_type(
        "aws:ec2/internetGateway:InternetGateway", "internet-gateway", "vpcId", "ownerId",
        model_paths={"vpcId": "Attachments[0].VpcId"}, computed_outputs=ec2_arn("internet-gateway"), computed="vpcId",
        create=Creation("CreateInternetGateway", "{InternetGatewayId}", "InternetGateway"),
        reads=(read_by_id("DescribeInternetGateways", "InternetGatewayIds", "InternetGateways[0]"),),
        changes=(
            Change(
                "AttachInternetGateway", ("vpcId",), {"InternetGatewayId": "{id}"}, undo="DetachInternetGateway",
                undo_with={"InternetGatewayId": "{id}", "VpcId": "{vpcId}"}, exclusive=True,
            ),
        ),
        delete=Deletion("DeleteInternetGateway", {"InternetGatewayId": "{id}"}),
        provider=RealProvider(
            "ec2/vpc_internet_gateway.go",
            waits={"create": "InvalidInternetGatewayID.NotFound", "delete": "DependencyViolation"},
        ),
    ),
    ec2_type(
        "aws:ec2/natGateway:NatGateway", "natgateway", "subnetId allocationId connectivityType privateIp vpcId",
        "associationId networkInterfaceId publicIp", renamed={"privateIp": "PrivateIpAddress"},
        model_paths={
            "allocationId": "NatGatewayAddresses[0].AllocationId",
            "associationId": "NatGatewayAddresses[0].AssociationId",
            "networkInterfaceId": "NatGatewayAddresses[0].NetworkInterfaceId",
            "privateIp": "NatGatewayAddresses[0].PrivateIp", "publicIp": "NatGatewayAddresses[0].PublicIp",
        },
        replaced_by="allocationId connectivityType privateIp subnetId vpcId", computed="privateIp vpcId",
        create=Creation("CreateNatGateway", "{NatGatewayId}", "NatGateway"),
        reads=(read_by_id("DescribeNatGateways", "NatGatewayIds", "NatGateways[0]"),),
        delete=Deletion("DeleteNatGateway", {"NatGatewayId": "{id}"}),
        state="State", state_reason="FailureMessage", ready="available", failed="failed", gone="deleted",
        provider=RealProvider(
            "ec2/vpc_nat_gateway.go",
            unreached={
                "secondary addresses": "AssociateNatGatewayAddress DisassociateNatGatewayAddress "
                "AssignPrivateNatGatewayAddress UnassignPrivateNatGatewayAddress",
            },
        ),
        standing=StandingCost("NAT gateway"),
    ),
    ec2_type(
        "aws:ec2/vpcEndpoint:VpcEndpoint", "vpc-endpoint",
        "vpcId serviceName vpcEndpointType routeTableIds subnetIds securityGroupIds policy privateDnsEnabled "
        "ipAddressType autoAccept",
        "ownerId state prefixListId cidrBlocks networkInterfaceIds requesterManaged",
        defaults={"vpcEndpointType": "Gateway"}, extra="autoAccept", renamed={"policy": "PolicyDocument"},
        model_paths={"securityGroupIds": "Groups[].GroupId"}, unset={"privateDnsEnabled": False},
        computed_outputs=ec2_arn("vpc-endpoint"),
        replaced_by="serviceName vpcEndpointType vpcId",
        computed="ipAddressType policy privateDnsEnabled routeTableIds securityGroupIds subnetIds",
        unordered="routeTableIds securityGroupIds subnetIds",
        create=Creation("CreateVpcEndpoint", "{VpcEndpointId}", "VpcEndpoint"),
        reads=(
            read_by_id("DescribeVpcEndpoints", "VpcEndpointIds", "VpcEndpoints[0]"),
            read_by_filter(
                "DescribePrefixLists", "PrefixLists[].{prefixListId: PrefixListId, cidrBlocks: Cidrs} | [0]",
                {"prefix-list-name": "{ServiceName}"},
            ),
        ),
        changes=(
            Change(
                "ModifyVpcEndpoint", ("policy",), _ENDPOINT, undo="ModifyVpcEndpoint",
                undo_with={**_ENDPOINT, "ResetPolicy": True},
            ),
            Change("ModifyVpcEndpoint", ("privateDnsEnabled", "ipAddressType"), _ENDPOINT),
        ),
        lists=tuple(
            (
            ListChange("ModifyVpcEndpoint", name, _ENDPOINT, f"Add{ids}", f"Remove{ids}")
            for name, ids in _ENDPOINT_LISTS.items()
        ),
        ),
        delete=Deletion("DeleteVpcEndpoints", {"VpcEndpointIds": ["{id}"]}),
        state="State", ready="available Available pendingAcceptance", failed="failed rejected expired",
        gone="deleted Deleted",
        # The zone of the private names is AWS's; it is associated with the VPC by whoever makes the endpoint.
        provider=RealProvider(
            "ec2/vpc_endpoint.go", actions={"privateDnsEnabled": "route53:AssociateVPCWithHostedZone"},
            waits={"create": "InvalidVpcEndpointId.NotFound"},
            unreached={
                "endpoints of others' services, which accept": "AcceptVpcEndpointConnections "
                "DescribeVpcEndpointServiceConfigurations",
            },
        ),
        standing=StandingCost("interface endpoint", {"vpcEndpointType": "Interface"}),
    ),
    ec2_type(
        "aws:ec2/eip:Eip", "elastic-ip", "domain address instance networkInterface networkBorderGroup publicIpv4Pool",
        "allocationId associationId privateIp publicIp", model_paths={**_EIP_TARGETS, "privateIp": "PrivateIpAddress"},
        computed_outputs=ec2_arn("elastic-ip"),
        replaced_by="address domain networkBorderGroup publicIpv4Pool",
        computed="domain instance networkBorderGroup networkInterface publicIpv4Pool",
        create=Creation("AllocateAddress", "{AllocationId}"),
        reads=(
            read_by_id("DescribeAddresses", "AllocationIds", "Addresses[0]"),
            # Since 5.46, for ptr_record; a refusal is an error. So in 6.x, too.
            unused_read("DescribeAddressesAttribute", {"AllocationIds": ["{id}"], "Attribute": "domain-name"}),
        ),
        changes=(
            Change(
                "AssociateAddress", ("instance", "networkInterface"), _EIP, names=_EIP_TARGETS,
                undo="DisassociateAddress", undo_with={"AssociationId": "{associationId}"}, exclusive=True,
            ),
        ),
        delete=Deletion("ReleaseAddress", _EIP),
        # An address that something else has associated is freed before it is released.
        provider=RealProvider(
            "ec2/ec2_eip.go", calls={"associated": "DisassociateAddress"},
            waits={"create": "InvalidAllocationID.NotFound"},
            unreached={"addresses of IPAM": "GetIpamPoolAllocations"},
        ),
        lost=LostWith(
            "the public address of {name} goes back to AWS: the new one is another", "tell those who know the old one",
        ),
        standing=StandingCost("public address"),
    ),
    ec2_type(
        "aws:ec2/eipAssociation:EipAssociation", "",
        "allocationId instanceId networkInterfaceId privateIpAddress publicIp allowReassociation",
        extra="allowReassociation",
        replaced_by="allocationId allowReassociation instanceId networkInterfaceId privateIpAddress publicIp",
        computed="allocationId instanceId networkInterfaceId privateIpAddress publicIp",
        create=Creation("AssociateAddress", "{AssociationId}"),
        reads=(read_by_filter("DescribeAddresses", _ASSOCIATED, {"association-id": "{id}"}),),
        delete=Deletion("DisassociateAddress", {"AssociationId": "{id}"}),
        behaviour="routes.AddressAssociationResource",
        provider=RealProvider("ec2/ec2_eip_association.go", waits={"create": "InvalidInstanceID"}),
    ),
)  # fmt: skip
