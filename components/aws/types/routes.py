# SPDX-License-Identifier: Apache-2.0
"""Route tables, their routes, and their associations."""

from components.aws.types.aws_resource_type import (
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
from components.values.resource_types import inputs_in_reviews

_TARGETS = (
    "carrierGatewayId coreNetworkArn egressOnlyGatewayId gatewayId localGatewayId natGatewayId networkInterfaceId "
    "transitGatewayId vpcEndpointId vpcPeeringConnectionId"
)

_ONE_ASSOCIATION = "RouteTables[].Associations[] | [?RouteTableAssociationId=='{id}' || SubnetId=='{subnetId}'] | [0]"


ROUTES_TYPES = (
    ec2_type(
        "aws:ec2/routeTable:RouteTable", "route-table", "vpcId routes", "ownerId", extra="routes",
        computed_outputs=ec2_arn("route-table"),
        replaced_by="vpcId", computed="routes", unordered="routes",
        create=Creation("CreateRouteTable", "{RouteTableId}", "RouteTable"),
        reads=(read_by_id("DescribeRouteTables", "RouteTableIds", "RouteTables[0]"),),
        delete=Deletion("DeleteRouteTable", {"RouteTableId": "{id}"}), behaviour="routes.RouteTableResource",
        # Subnets that still have it lose it before it is deleted.
        provider=RealProvider(
            "ec2/vpc_route_table.go",
            calls={
                "delete": "DescribeRouteTables", "routes": "CreateRoute ReplaceRoute DeleteRoute",
                "associated": "DisassociateRouteTable",
            },
            unreached={
                "gateways of VPNs": "EnableVgwRoutePropagation DisableVgwRoutePropagation",
                "routes to interfaces": "DescribeNetworkInterfaces",
            },
        ),
        live=LiveState(filter="route-table-id"), part="route table",
        in_reviews=inputs_in_reviews(judged="routes", placed="vpcId"),
    ),
    ec2_type(
        "aws:ec2/route:Route", "",
        f"routeTableId destinationCidrBlock destinationIpv6CidrBlock destinationPrefixListId {_TARGETS}",
        "instanceId origin state", renamed={"egressOnlyGatewayId": "EgressOnlyInternetGatewayId"},
        replaced_by="routeTableId destinationCidrBlock destinationIpv6CidrBlock destinationPrefixListId",
        computed="networkInterfaceId",
        create=Creation("CreateRoute", "{routeTableId}_{destination}"),
        reads=(Read("DescribeRouteTables", {"RouteTableIds": ["{routeTableId}"]}, "RouteTables[0]"),),
        delete=Deletion("DeleteRoute", {}), taken_codes="RouteAlreadyExists", behaviour="routes.RouteResource",
        part="route",
        provider=RealProvider(
            "ec2/vpc_route.go",
            calls={"gatewayId": "ReplaceRoute", "natGatewayId": "ReplaceRoute", "networkInterfaceId": "ReplaceRoute"},
        ),
        in_reviews=inputs_in_reviews(
            judged=(
                "destinationCidrBlock destinationIpv6CidrBlock destinationPrefixListId egressOnlyGatewayId gatewayId "
                "natGatewayId networkInterfaceId transitGatewayId vpcEndpointId vpcPeeringConnectionId"
            ),
            placed="routeTableId",
        ),
    ),
    ec2_type(
        "aws:ec2/routeTableAssociation:RouteTableAssociation", "", "routeTableId subnetId gatewayId",
        replaced_by="gatewayId subnetId",
        create=Creation("AssociateRouteTable", "{AssociationId}"),
        reads=(read_by_filter("DescribeRouteTables", _ONE_ASSOCIATION, {"association.subnet-id": "{subnetId}"}),),
        delete=Deletion("DisassociateRouteTable", {"AssociationId": "{id}"}), taken_codes="Resource.AlreadyAssociated",
        behaviour="routes.TableAssociationResource", part="route table association",
        provider=RealProvider(
            "ec2/vpc_route_table_association.go", calls={"routeTableId": "ReplaceRouteTableAssociation"},
        ),
        in_reviews=inputs_in_reviews(placed="routeTableId subnetId"),
    ),
)  # fmt: skip
