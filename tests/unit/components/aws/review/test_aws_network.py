# SPDX-License-Identifier: Apache-2.0
"""Security groups, routes and public addresses of AWS, as passages: what opens and closes in words."""

from __future__ import annotations

from typing import Any

import pytest

from components.aws.review.platform import AwsReview
from components.platform.review import ReviewedResource, Snapshot, unknown_value
from tests.support.reviews import id_of, resource
from trainyard.review.reach import Reach, compare_networks, is_outside, passage_words
from trainyard.review.rendezvous import find_hanging_connections

GROUP, TEMPLATE = "aws:ec2/securityGroup:SecurityGroup", "aws:ec2/launchTemplate:LaunchTemplate"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
OLD_RULE, ENDPOINT = "aws:ec2/securityGroupRule:SecurityGroupRule", "aws:ec2/vpcEndpoint:VpcEndpoint"
SUBNET, VPC = "aws:ec2/subnet:Subnet", "aws:ec2/vpc:Vpc"
ROUTE, ROUTES = "aws:ec2/route:Route", "aws:ec2/routeTable:RouteTable"
ASSOCIATION = "aws:ec2/routeTableAssociation:RouteTableAssociation"
NODES, MORE = id_of(GROUP, "nodes"), id_of(GROUP, "more")


def ingress(called: str, group: str = NODES, **row: Any) -> ReviewedResource:
    return resource(INGRESS, called, securityGroupId=group, **row)


def tcp(first: int, last: int, **peer: str) -> dict[str, Any]:
    return {"ipProtocol": "tcp", "fromPort": first, "toPort": last, **peer}


ITSELF = {"securityGroupId": NODES, "ipProtocol": "-1", "referencedSecurityGroupId": NODES}


def side(
    *extra: ReviewedResource, groups: tuple[str, ...] = ("nodes",), inline: Any = None, **interface: Any
) -> Snapshot:
    """A stack whose nodes reach each other, and S3 through its endpoint."""
    interface = {"securityGroups": [id_of(GROUP, name) for name in groups], **interface}
    made = (
        resource(VPC, "vpc", cidrBlock="10.40.0.0/16"),
        resource(SUBNET, "subnet", cidrBlock="10.40.0.0/24"),
        resource(GROUP, "nodes", name="vision-nodes", **({"ingress": inline} if inline else {})),
        resource(TEMPLATE, "resnet", networkInterfaces=[interface]),
        resource(ENDPOINT, "s3", serviceName="com.amazonaws.us-east-1.s3", vpcEndpointType="Gateway"),
        resource(INGRESS, "nodes-from-nodes", **ITSELF),
        resource(EGRESS, "nodes-to-nodes", **ITSELF),
        resource(EGRESS, "to-s3", securityGroupId=NODES, **tcp(443, 443, prefixListId="pl-s3")),
    )
    rule = {"source": "resnet/worker", "target": "resnet/main", "ports": 29400, "why": "meet"}
    out = {"source": "subnet", "target": "services", "ports": 443, "why": "bucket"}
    return Snapshot("vision-dev", "aws-dl1", {"network": {"rules": [rule, out]}}, (*made, *extra))


def reach(before: Snapshot, after: Snapshot) -> Reach:
    answers = AwsReview()
    return compare_networks(answers.network(before), answers.network(after))


OPENED = {
    "SSH from an office": (
        side(ingress("office", **tcp(22, 22, cidrIpv4="203.0.113.0/24"))),
        ["TCP 22 into the nodes, from 203.0.113.0/24"],
    ),
    "IPv6": (side(ingress("six", **tcp(22, 22, cidrIpv6="::/0"))), ["TCP 22 into the nodes, from anywhere (::/0)"]),
    "everything": (
        side(ingress("all", ipProtocol="-1", cidrIpv4="0.0.0.0/0")),
        ["every protocol into the nodes, from anywhere (0.0.0.0/0)"],
    ),
    "pings": (
        side(ingress("ping", ipProtocol="icmp", fromPort=8, toPort=-1, cidrIpv4="10.0.0.0/8")),
        ["ICMP type 8 into the nodes, from 10.0.0.0/8"],
    ),
    "another group": (
        side(ingress("g", **tcp(80, 80, referencedSecurityGroupId="sg-theirs"))),
        ["TCP 80 into the nodes, from the security group sg-theirs"],
    ),
    "a prefix list": (
        side(ingress("p", **tcp(80, 80, prefixListId="pl-theirs"))),
        ["TCP 80 into the nodes, from the prefix list pl-theirs"],
    ),
    "in the group itself": (
        side(inline=[{"protocol": "tcp", "fromPort": 1, "toPort": 2, "cidrBlocks": ["10.9.0.0/16"], "self": True}]),
        ["TCP 1-2 into the nodes, from 10.9.0.0/16"],
    ),
    "a rule of the older kind": (
        side(resource(OLD_RULE, "old", type="ingress", securityGroupId=NODES, protocol="tcp", fromPort=5, toPort=6,
                      cidrBlocks=["10.9.0.0/16", "10.8.0.0/16"])),
        ["TCP 5-6 into the nodes, from 10.8.0.0/15"],
    ),
    "a rule whose direction is not known": (
        side(resource(OLD_RULE, "old", type=unknown_value("type"), securityGroupId=NODES, protocol="tcp", fromPort=5,
                      toPort=6, cidrBlocks=["10.9.0.0/16"])),
        ["TCP 5-6 into the nodes, from 10.9.0.0/16"],
    ),
    "one more group of the machines": (
        side(resource(GROUP, "more", name="more"), ingress("m", MORE, **tcp(9, 9, cidrIpv4="10.0.0.0/8")),
             groups=("nodes", "more")),
        ["TCP 9 into the nodes, from 10.0.0.0/8"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OPENED)
def test_what_opens_in_words(case: str) -> None:
    after, expected = OPENED[case]
    found = reach(side(), after)
    assert list(map(passage_words, found.opened)) == expected
    assert found.closed == ()


def test_a_rule_in_another_group_of_the_same_machines_shows_nothing() -> None:
    rule = tcp(9, 9, cidrIpv4="10.0.0.0/8")
    more = resource(GROUP, "more", name="more")
    before = side(ingress("m", **rule), more, groups=("nodes", "more"))
    after = side(ingress("renamed", id_of(GROUP, "more"), **rule), more, groups=("more", "nodes"))
    assert reach(before, after) == Reach()


def test_nodes_find_each_other_by_their_group_and_the_services_by_endpoints() -> None:
    whole = side()
    network = AwsReview().network(whole)
    assert find_hanging_connections(whole, network) == ()
    assert not any(is_outside(one, network) for one in network.passages)
    rows = tuple(one for one in whole.resources if one.name not in ("nodes-to-nodes", "to-s3"))
    broken = Snapshot("vision-dev", "aws-dl1", whole.plan, rows)
    assert [(hang.pair, hang.missing) for hang in find_hanging_connections(broken, AwsReview().network(broken))] == [
        ("subnet -> services", "egress at subnet"),
        ("resnet/worker -> resnet/main", "egress at resnet/worker"),
    ]


def test_public_addresses_and_routes_are_ways() -> None:
    routes = (
        resource(ROUTES, "routes"),
        resource(ROUTE, "out", routeTableId=id_of(ROUTES, "routes"), destinationCidrBlock="0.0.0.0/0", gatewayId="g"),
        resource(ASSOCIATION, "routes", subnetId=id_of(SUBNET, "subnet"), routeTableId=id_of(ROUTES, "routes")),
    )  # fmt: skip
    assert reach(side(), side(*routes, associatePublicIpAddress="true")) == Reach(
        ways_opened=(
            "the subnet `subnet`: to 0.0.0.0/0 through an internet gateway",
            "the nodes: nodes can have public addresses",
        )
    )


def test_a_group_of_somebody_else_is_not_judged() -> None:
    alone = Snapshot("vision-dev", "aws-dl1", {"network": {"securityGroup": "sg-theirs"}}, ())
    assert AwsReview().network(alone).unjudged == (
        "the security group sg-theirs is not the stack's: its rules are not in the stack file"
    )
