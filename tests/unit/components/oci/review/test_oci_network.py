# SPDX-License-Identifier: Apache-2.0
"""Security lists, groups, routes and public addresses of OCI, as passages: what opens and closes in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from components.oci.review.platform import OciReview
from components.platform.review import UNKNOWN, Passage, ReviewedResource, Snapshot
from tests.support.reviews import id_of, resource
from trainyard.review.reach import Reach, compare_networks, is_outside, passage_words

LIST, SUBNET = "oci:Core/securityList:SecurityList", "oci:Core/subnet:Subnet"
VCN, ROUTES = "oci:Core/vcn:Vcn", "oci:Core/routeTable:RouteTable"
NAT, INTERNET = "oci:Core/natGateway:NatGateway", "oci:Core/internetGateway:InternetGateway"
GROUP = "oci:Core/networkSecurityGroup:NetworkSecurityGroup"
GROUP_RULE = "oci:Core/networkSecurityGroupSecurityRule:NetworkSecurityGroupSecurityRule"
NODES = "10.0.0.0/24"


def tcp(end: str, peer: str, ports: tuple[int, int] | None, **more: Any) -> dict[str, Any]:
    options = {"tcpOptions": {"min": ports[0], "max": ports[1]}} if ports else {}
    return {"protocol": "6", end: peer, f"{end}Type": "CIDR_BLOCK", **options, **more}


MEET = [tcp("source", NODES, (29400, 29400))]
OUT = [tcp("destination", "all-iad-services", (443, 443), destinationType="SERVICE_CIDR_BLOCK")]


def side(
    ingress: Any = MEET, egress: Any = OUT, routes: Any = (), extra: tuple[ReviewedResource, ...] = (), **subnet: Any
) -> Snapshot:
    inputs = {
        "cidrBlock": NODES,
        "prohibitPublicIpOnVnic": True,
        "securityListIds": [id_of(LIST, "rules")],
        "routeTableId": id_of(ROUTES, "routes"),
        **subnet,
    }
    made = (
        resource(VCN, "vcn", cidrBlocks=["10.0.0.0/16"]),
        resource(SUBNET, "subnet", **{key: value for key, value in inputs.items() if value is not None}),
        resource(LIST, "rules", ingressSecurityRules=ingress, egressSecurityRules=egress),
        resource(ROUTES, "routes", routeRules=list(routes)),
    )
    return Snapshot("vision-dev", "oci", {}, (*made, *extra))


def reach(before: Snapshot, after: Snapshot) -> Reach:
    answers = OciReview()
    return compare_networks(answers.network(before), answers.network(after))


def test_rules_become_passages() -> None:
    found = OciReview().network(side())
    assert found.passages == (
        Passage("the subnet", "ingress", "tcp", NODES, (29400, 29400)),
        Passage("the subnet", "egress", "tcp", "the region's services", (443, 443)),
    )
    assert (found.nodes, found.addresses) == ("the subnet", (NODES,))
    assert not any(is_outside(one, found) for one in found.passages)
    assert found.public == ()


OPENED = {
    "a port from everywhere": (
        side([*MEET, tcp("source", "0.0.0.0/0", (22, 22))]),
        ["TCP 22 into the subnet, from anywhere (0.0.0.0/0)"],
    ),
    "every port": (side([tcp("source", NODES, None)]), [
        "TCP 0-29399 into the subnet, from 10.0.0.0/24",
        "TCP 29401-65535 into the subnet, from 10.0.0.0/24",
    ]),
    "every protocol": (side([{"protocol": "all", "source": NODES}]), [
        "every protocol but TCP into the subnet, from 10.0.0.0/24",
        "TCP 0-29399 into the subnet, from 10.0.0.0/24",
        "TCP 29401-65535 into the subnet, from 10.0.0.0/24",
    ]),
    "pings": (
        side([*MEET, {"protocol": "1", "source": "10.0.0.0/16", "icmpOptions": {"type": 8}}]),
        ["ICMP type 8 into the subnet, from 10.0.0.0/16"],
    ),
    "a protocol by number": (
        side([*MEET, {"protocol": "50", "source": "10.9.0.0/16"}]),
        ["protocol 50 into the subnet, from 10.9.0.0/16"],
    ),
    "IPv6": (side(egress=[*OUT, {"protocol": "17", "destination": "::/0"}]), [
        "every UDP port out of the subnet, to anywhere (::/0)"
    ]),
    "what is not known": (side([*MEET, tcp("source", f"{UNKNOWN} block", (22, 22))]), [
        "TCP 22 into the subnet, from (unknown) block"
    ]),
    "a list more": (
        side(securityListIds=[id_of(LIST, "rules"), id_of(LIST, "more")], extra=(
            resource(LIST, "more", ingressSecurityRules=[tcp("source", NODES, (5000, 5001))]),)),
        ["TCP 5000-5001 into the subnet, from 10.0.0.0/24"],
    ),
    "no list, which leaves OCI's own": (side(securityListIds=None), [
        "every protocol out of the subnet, to anywhere (0.0.0.0/0)",
        "ICMP type 3 code 4 into the subnet, from anywhere (0.0.0.0/0) but 10.0.0.0/16",
        "ICMP type 3 into the subnet, from 10.0.0.0/16",
        "TCP 22 into the subnet, from anywhere (0.0.0.0/0)",
    ]),
    "a security group": (
        side(extra=(
            resource(GROUP, "web", displayName="web"),
            resource(GROUP_RULE, "web", networkSecurityGroupId=id_of(GROUP, "web"), direction="INGRESS", protocol="6",
                     source="0.0.0.0/0", tcpOptions={"destinationPortRange": {"min": 80, "max": 80}}),
        )),
        ["TCP 80 into the security group `web`, from anywhere (0.0.0.0/0)"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OPENED)
def test_what_opens_in_words(case: str) -> None:
    after, expected = OPENED[case]
    found = reach(side(), after)
    assert list(map(passage_words, found.opened)) == expected


def test_routes_and_public_addresses_are_ways() -> None:
    gateways = (resource(NAT, "nat"), resource(INTERNET, "internet"))
    to_nat = {"destination": "0.0.0.0/0", "destinationType": "CIDR_BLOCK", "networkEntityId": id_of(NAT, "nat")}
    to_internet = {**to_nat, "networkEntityId": id_of(INTERNET, "internet")}
    assert reach(side(), side(routes=[to_nat], extra=gateways)).ways_opened == (
        "the subnet: to 0.0.0.0/0 through a NAT gateway",
    )
    before, after = (
        side(routes=[to_internet], extra=gateways, prohibitPublicIpOnVnic=closed) for closed in (True, False)
    )
    assert reach(before, after) == Reach(ways_opened=("the subnet: nodes can have public addresses",))
    assert reach(side(), side(prohibitPublicIpOnVnic=False)) == Reach()


def test_other_names_descriptions_and_orders_show_nothing() -> None:
    rules = [tcp("source", NODES, (5000, 5009)), tcp("source", "10.0.4.0/24", (22, 22))]
    split = [tcp("source", NODES, (5000, 5004), description="why"), tcp("source", NODES, (5005, 5009), stateless=False)]
    before = side([*MEET, *rules])
    after = side([rules[1], *split, *MEET])
    renamed = tuple(
        replace(one, name=f"{one.name}-2", urn=f"{one.urn}-2") if one.type != SUBNET else one for one in after.resources
    )
    assert reach(before, replace(after, resources=renamed)) == Reach()


def test_one_more_subnet_leaves_the_rules_of_the_first_alone() -> None:
    more = resource(
        SUBNET, "more", cidrBlock="10.0.9.0/24", prohibitPublicIpOnVnic=True, securityListIds=[id_of(LIST, "rules")]
    )
    found = reach(side(), side(extra=(more,)))
    assert list(map(passage_words, found.opened)) == [
        "TCP 443 out of the subnet `more`, to the region's services",
        "TCP 29400 into the subnet `more`, from 10.0.0.0/24",
    ]


def test_a_subnet_of_somebody_else_is_not_judged() -> None:
    alone = Snapshot("vision-dev", "oci", {"network": {"subnet": "ocid1.subnet.oc1..theirs"}}, ())
    assert OciReview().network(alone).unjudged == (
        "the subnet ocid1.subnet.oc1..theirs is not the stack's: its rules are not in the stack file"
    )
    borrowed = Snapshot("vision-dev", "oci", {"uses": "company/trainyard/platform", "taken": ["network"]}, ())
    assert "of the stack company/trainyard/platform" in OciReview().network(borrowed).unjudged


def test_the_only_gateway_that_a_preview_will_make_is_the_one_that_is_meant() -> None:
    nat, internet = (replace(resource(token, "new"), id="") for token in (NAT, INTERNET))
    route = {"destination": "0.0.0.0/0", "networkEntityId": UNKNOWN}
    (way,) = OciReview().network(side(routes=[route], extra=(nat,))).ways
    assert way == "the subnet: to 0.0.0.0/0 through a NAT gateway"
    (way,) = OciReview().network(side(routes=[route], extra=(nat, internet))).ways
    assert way.endswith("through a gateway that is not known")
