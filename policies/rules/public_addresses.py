# SPDX-License-Identifier: Apache-2.0
"""Training nodes need no public addresses: they reach the outside through a gateway."""

from policies.rule import JudgedResource, PolicyRule
from policies.verdicts import PASS, PolicyVerdict, Unknown, either, fail

SUBNET = "oci:Core/subnet:Subnet"
# Either of them prevents public addresses. OCI's default for both is false.
PROHIBITIONS = ("prohibitPublicIpOnVnic", "prohibitInternetIngress")


def judge(resource: JudgedResource) -> PolicyVerdict:
    def prohibited(by: str) -> PolicyVerdict:
        return PASS if resource.properties.get(by) else fail("its nodes may get public addresses")

    return either(*(lambda by=by: prohibited(by) for by in PROHIBITIONS))


RULE = PolicyRule(
    id="public-addresses",
    level="mandatory",
    asks="A subnet gives its nodes no public addresses.",
    remedy="set prohibitPublicIpOnVnic: true; nodes go out through a NAT or service gateway",
    types=(SUBNET,),
    judge=judge,
    passes={
        "private": JudgedResource(SUBNET, {"prohibitPublicIpOnVnic": True}),
        "no way in": JudgedResource(SUBNET, {"prohibitInternetIngress": True, "prohibitPublicIpOnVnic": Unknown()}),
    },
    fails={
        "not set": JudgedResource(SUBNET, {"cidrBlock": "10.20.0.0/24"}),
        "public": JudgedResource(SUBNET, {"prohibitPublicIpOnVnic": False, "prohibitInternetIngress": False}),
    },
    unknown={
        "decided elsewhere": JudgedResource(SUBNET, {"prohibitPublicIpOnVnic": Unknown("prohibitPublicIpOnVnic")})
    },
)
