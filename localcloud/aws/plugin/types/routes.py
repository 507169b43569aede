# SPDX-License-Identifier: Apache-2.0
"""Route tables, their routes, and their associations."""

from collections.abc import Mapping

from localcloud.aws.plugin.rows import AwsRow, Read, arn, ec2, read_by_filter, read_by_id, tagged

_TARGETS = (
    "carrierGatewayId coreNetworkArn egressOnlyGatewayId gatewayId localGatewayId natGatewayId networkInterfaceId "
    "transitGatewayId vpcEndpointId vpcPeeringConnectionId"
)
_ONE_ASSOCIATION = "RouteTables[].Associations[] | [?RouteTableAssociationId=='{id}' || SubnetId=='{subnetId}'] | [0]"

ROWS: Mapping[str, AwsRow] = {
    "aws:ec2/routeTable:RouteTable": tagged(
        "route-table",
        "vpcId routes",
        "ownerId",
        create="CreateRouteTable",
        created="RouteTable",
        id="{RouteTableId}",
        reads=(read_by_id("DescribeRouteTables", "RouteTableIds", "RouteTables[0]"),),
        delete="DeleteRouteTable",
        delete_with={"RouteTableId": "{id}"},
        extra=frozenset({"routes"}),
        computed=arn("route-table"),
        behaviour="routes.RouteTableResource",
    ),
    "aws:ec2/route:Route": ec2(
        f"routeTableId destinationCidrBlock destinationIpv6CidrBlock destinationPrefixListId {_TARGETS}",
        "instanceId origin state",
        create="CreateRoute",
        id="{routeTableId}_{destination}",
        reads=(Read("DescribeRouteTables", {"RouteTableIds": ["{routeTableId}"]}, "RouteTables[0]"),),
        delete="DeleteRoute",
        delete_with={},
        renamed={"egressOnlyGatewayId": "EgressOnlyInternetGatewayId"},
        taken_codes=frozenset({"RouteAlreadyExists"}),
        behaviour="routes.RouteResource",
    ),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": ec2(
        "routeTableId subnetId gatewayId",
        create="AssociateRouteTable",
        id="{AssociationId}",
        reads=(read_by_filter("DescribeRouteTables", _ONE_ASSOCIATION, {"association.subnet-id": "{subnetId}"}),),
        delete="DisassociateRouteTable",
        delete_with={"AssociationId": "{id}"},
        taken_codes=frozenset({"Resource.AlreadyAssociated"}),
        behaviour="routes.TableAssociationResource",
    ),
}
