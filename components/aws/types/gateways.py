# SPDX-License-Identifier: Apache-2.0
"""Ways out of a network: gateways, endpoints and addresses."""

from components.aws.types.aws_resource_type import (
    Change,
    Creation,
    Deletion,
    ListChange,
    LiveState,
    RealProvider,
    ec2_arn,
    ec2_type,
    read_by_filter,
    read_by_id,
    unused_read,
)
from components.values.resource_types import LostWith, StandingCost, inputs_in_reviews

_EIP, _ENDPOINT = {"AllocationId": "{id}"}, {"VpcEndpointId": "{id}"}
_EIP_TARGETS = {"instance": "InstanceId", "networkInterface": "NetworkInterfaceId"}
_ENDPOINT_LISTS = {
    "routeTableIds": "RouteTableIds", "subnetIds": "SubnetIds", "securityGroupIds": "SecurityGroupIds"
}  # fmt: skip
_ASSOCIATED = "Addresses[?AssociationId=='{id}'] | [0]"

GATEWAYS_TYPES = (
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
        live=LiveState(filter="nat-gateway-id"),
        in_reviews=inputs_in_reviews(placed="allocationId connectivityType subnetId"),
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
        provider=RealProvider("ec2/vpc_internet_gateway.go"),
        live=LiveState(filter="internet-gateway-id"),
        in_reviews=inputs_in_reviews(placed="vpcId"),
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
            unreached={
                "endpoints of others' services, which accept": "AcceptVpcEndpointConnections "
                "DescribeVpcEndpointServiceConfigurations",
            },
        ),
        standing=StandingCost("interface endpoint", {"vpcEndpointType": "Interface"}), part="endpoint",
        in_reviews=inputs_in_reviews(
            judged="policy securityGroupIds serviceName",
            placed="privateDnsEnabled routeTableIds subnetIds vpcEndpointType vpcId",
        ),
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
            unreached={"addresses of IPAM": "GetIpamPoolAllocations"},
        ),
        lost=LostWith(
            "the public address of {name} goes back to AWS: the new one is another", "tell those who know the old one",
        ),
        standing=StandingCost("public address"),
        in_reviews=inputs_in_reviews(placed="domain"),
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
        behaviour="routes.AddressAssociationResource", part="address association",
        provider=RealProvider("ec2/ec2_eip_association.go"),
    ),
)  # fmt: skip
