# SPDX-License-Identifier: Apache-2.0
"""Networks: VPCs, subnets, gateways, addresses, endpoints and security groups."""

from components.values.resource_types import LostWith, ResourceType, input_names

NETWORK_TYPES = (
    ResourceType(
        token="aws:ec2/vpc:Vpc",
        tags="tags",
        replaced_by=input_names("cidrBlock instanceTenancy"),
        computed=input_names("assignGeneratedIpv6CidrBlock cidrBlock enableDnsHostnames"),
        lost=LostWith(
            "the VPC {name} goes with everything in it: machines first, and AWS deletes none that holds what "
            "others made",
            "let the runs end first; move what is not the stack's",
        ),
    ),
    ResourceType(
        token="aws:ec2/subnet:Subnet",
        tags="tags",
        replaced_by=input_names("vpcId cidrBlock availabilityZone availabilityZoneId ipv6CidrBlock ipv6Native"),
        computed=input_names("availabilityZone availabilityZoneId privateDnsHostnameTypeOnLaunch"),
        lost=LostWith(
            "the subnet {name} goes, and AWS deletes none while a machine or an endpoint is in it: all of them "
            "go first",
            "let the runs end first; checkpoints in the bucket stay",
        ),
    ),
    ResourceType(
        token="aws:ec2/internetGateway:InternetGateway",
        tags="tags",
        computed=input_names("vpcId"),
    ),
    ResourceType(
        token="aws:ec2/natGateway:NatGateway",
        tags="tags",
        replaced_by=input_names("allocationId connectivityType privateIp subnetId vpcId"),
        computed=input_names("privateIp vpcId"),
    ),
    ResourceType(
        token="aws:ec2/eip:Eip",
        tags="tags",
        replaced_by=input_names("address domain networkBorderGroup publicIpv4Pool"),
        computed=input_names("domain instance networkBorderGroup networkInterface publicIpv4Pool"),
        lost=LostWith(
            "the public address of {name} goes back to AWS: the new one is another", "tell those who know the old one"
        ),
    ),
    ResourceType(
        token="aws:ec2/eipAssociation:EipAssociation",
        replaced_by=input_names(
            "allocationId allowReassociation instanceId networkInterfaceId privateIpAddress publicIp"
        ),
        computed=input_names("allocationId instanceId networkInterfaceId privateIpAddress publicIp"),
    ),
    ResourceType(
        token="aws:ec2/vpcEndpoint:VpcEndpoint",
        tags="tags",
        replaced_by=input_names("serviceName vpcEndpointType vpcId"),
        computed=input_names("ipAddressType policy privateDnsEnabled routeTableIds securityGroupIds subnetIds"),
        unordered=input_names("routeTableIds securityGroupIds subnetIds"),
    ),
    ResourceType(
        token="aws:ec2/securityGroup:SecurityGroup",
        tags="tags",
        replaced_by=input_names("description name namePrefix vpcId"),
        computed=input_names("egress ingress vpcId"),
        unordered=input_names("egress ingress"),
    ),
    ResourceType(
        token="aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
        replaced_by=input_names("securityGroupId"),
        one_of=input_names("cidrIpv4 cidrIpv6 prefixListId referencedSecurityGroupId"),
    ),
    ResourceType(
        token="aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
        replaced_by=input_names("securityGroupId"),
        one_of=input_names("cidrIpv4 cidrIpv6 prefixListId referencedSecurityGroupId"),
    ),
)
