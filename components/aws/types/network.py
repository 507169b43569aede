# SPDX-License-Identifier: Apache-2.0
"""VPCs and subnets."""

from components.aws.types.aws_resource_type import (
    Change,
    Creation,
    Deletion,
    LiveState,
    Read,
    RealProvider,
    ec2_arn,
    ec2_type,
    read_by_filter,
    read_by_id,
)
from components.aws.types.security_groups import read_left_interfaces
from components.values.resource_types import LostWith, inputs_in_reviews

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
        unset={"instanceTenancy": "default", "enableDnsSupport": True, "enableNetworkAddressUsageMetrics": False},
        computed_outputs=ec2_arn("vpc"),
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
            unreached={"addresses of IPAM": "GetIpamPoolAllocations", "a tenancy that changes": "ModifyVpcTenancy"},
        ),
        lost=LostWith(
            "the VPC {name} goes with everything in it: machines first, and AWS deletes none that holds what others "
            "made",
            "let the runs end first; move what is not the stack's",
        ),
        live=LiveState("cidrBlock", filter="vpc-id"), part="network",
        in_reviews=inputs_in_reviews(placed="cidrBlock enableDnsHostnames enableDnsSupport instanceTenancy"),
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
            "ec2/vpc_subnet.go",
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
        live=LiveState("cidrBlock mapPublicIpOnLaunch", filter="subnet-id"),
        arns=ec2_arn("subnet", "ec2", "ssm"), part="subnet",
        public_by="mapPublicIpOnLaunch",
        in_reviews=inputs_in_reviews(judged="mapPublicIpOnLaunch", placed="availabilityZone cidrBlock vpcId"),
    ),
)  # fmt: skip
