# SPDX-License-Identifier: Apache-2.0
"""Nodes of a training job need no public address: the way out is a gateway's."""

from policies.rule import Resource, Rule
from policies.verdicts import PASS, Unknown, Verdict, either, fail

SUBNET = "oci:Core/subnet:Subnet"
# Either of them keeps public addresses away; OCI's default for both is no.
PROHIBITIONS = ("prohibitPublicIpOnVnic", "prohibitInternetIngress")


def judge(resource: Resource) -> Verdict:
    def prohibited(by: str) -> Verdict:
        return PASS if resource.properties.get(by) else fail("its nodes may get public addresses")

    return either(*(lambda by=by: prohibited(by) for by in PROHIBITIONS))


RULE = Rule(
    id="public-addresses",
    level="mandatory",
    asks="A subnet gives its nodes no public addresses.",
    remedy="set prohibitPublicIpOnVnic: true; nodes go out through a NAT or service gateway",
    types=(SUBNET,),
    judge=judge,
    passes={
        "private": Resource(SUBNET, {"prohibitPublicIpOnVnic": True}),
        "no way in": Resource(SUBNET, {"prohibitInternetIngress": True, "prohibitPublicIpOnVnic": Unknown()}),
    },
    fails={
        "nothing said": Resource(SUBNET, {"cidrBlock": "10.20.0.0/24"}),
        "public": Resource(SUBNET, {"prohibitPublicIpOnVnic": False, "prohibitInternetIngress": False}),
    },
    unknown={"decided elsewhere": Resource(SUBNET, {"prohibitPublicIpOnVnic": Unknown("prohibitPublicIpOnVnic")})},
)
