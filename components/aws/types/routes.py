# SPDX-License-Identifier: Apache-2.0
"""Routes."""

from components.values.resource_types import ResourceType, input_names

ROUTES_TYPES = (
    ResourceType(
        token="aws:ec2/routeTable:RouteTable",
        tags="tags",
        replaced_by=input_names("vpcId"),
        computed=input_names("routes"),
        unordered=input_names("routes"),
    ),
    ResourceType(
        token="aws:ec2/route:Route",
        replaced_by=input_names("routeTableId destinationCidrBlock destinationIpv6CidrBlock destinationPrefixListId"),
        computed=input_names("networkInterfaceId"),
    ),
    ResourceType(
        token="aws:ec2/routeTableAssociation:RouteTableAssociation",
        replaced_by=input_names("gatewayId subnetId"),
    ),
)
