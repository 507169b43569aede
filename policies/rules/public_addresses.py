# SPDX-License-Identifier: Apache-2.0
"""Training nodes need no public addresses: they reach the outside through a gateway."""

from typing import Any

from catalog.reason_tags import PUBLIC_ADDRESS
from components.values.projections import input_values, is_set
from components.values.resource_types import TypesWith
from policies.rule import (
    PASS,
    JudgedResource,
    PolicyRule,
    PolicyVerdict,
    Unknown,
    fail_because,
    verdict_of_either,
    verdict_on_every,
)

SUBNET = "oci:Core/subnet:Subnet"
AWS_SUBNET = "aws:ec2/subnet:Subnet"
INSTANCE = "aws:ec2/instance:Instance"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
ADDRESS = "aws:ec2/eip:Eip"
# Why an address is public: the stack asks for it, or it is of a NAT gateway, which lets nobody in.
REASONS = ("chosen", "nat")
ROWS = TypesWith(lambda row: row if row.public_by or row.private_by else None)


def judge_public_addresses(resource: JudgedResource) -> PolicyVerdict:
    if resource.type == ADDRESS:
        return with_reason(resource, "nobody asked for this public address")
    row = ROWS[resource.type]
    if row.private_by:
        # The cloud's default for all of them is false.
        return verdict_of_either(
            *(lambda name=name: judge_prohibition(resource, name) for name in sorted(row.private_by))
        )
    reason = "it gets a public address" if row.part == "machine" else "its nodes get public addresses"

    def judge_input(value: Any) -> PolicyVerdict:
        return with_reason(resource, reason) if is_set(value) else PASS

    given = [value for path in row.public_by for value in input_values(resource.properties, path)]
    return verdict_on_every(judge_input, given)


def judge_prohibition(resource: JudgedResource, by: str) -> PolicyVerdict:
    return PASS if resource.properties.get(by) else fail_because("its nodes may get public addresses")


def with_reason(resource: JudgedResource, otherwise: str) -> PolicyVerdict:
    return PASS if resource.tags.get(PUBLIC_ADDRESS) in REASONS else fail_because(otherwise)


RULE = PolicyRule(
    id="public-addresses",
    level="mandatory",
    asks="Nodes have no public addresses, unless somebody asked for one.",
    remedy="set prohibitPublicIpOnVnic: true on a subnet of OCI, and leave public addresses away on AWS: nodes go out"
    f" through a gateway; an address that you mean has the tag `{PUBLIC_ADDRESS}: chosen`",
    types=TypesWith(lambda row: row.token in ROWS, {ADDRESS: True}),
    judge=judge_public_addresses,
    passes={
        "private": JudgedResource(SUBNET, {"prohibitPublicIpOnVnic": True}),
        "no way in": JudgedResource(SUBNET, {"prohibitInternetIngress": True, "prohibitPublicIpOnVnic": Unknown()}),
        "AWS's default": JudgedResource(AWS_SUBNET, {"cidrBlock": "10.20.0.0/24"}),
        "the address of a NAT gateway": JudgedResource(ADDRESS, {"domain": "vpc", "tags": {PUBLIC_ADDRESS: "nat"}}),
        "asked for": JudgedResource(INSTANCE, {"associatePublicIpAddress": True, "tags": {PUBLIC_ADDRESS: "chosen"}}),
        "EFA without addresses": JudgedResource(TEMPLATE, {"networkInterfaces": [{"interfaceType": "efa"}]}),
    },
    fails={
        "not set": JudgedResource(SUBNET, {"cidrBlock": "10.20.0.0/24"}),
        "public": JudgedResource(SUBNET, {"prohibitPublicIpOnVnic": False, "prohibitInternetIngress": False}),
        "for all of a subnet": JudgedResource(AWS_SUBNET, {"mapPublicIpOnLaunch": True}),
        "an instance": JudgedResource(INSTANCE, {"associatePublicIpAddress": True}),
        "by a template": JudgedResource(TEMPLATE, {"networkInterfaces": [{"associatePublicIpAddress": "true"}]}),
        "without a reason": JudgedResource(ADDRESS, {"domain": "vpc"}),
        "for another reason": JudgedResource(ADDRESS, {"domain": "vpc", "tags": {PUBLIC_ADDRESS: "handy"}}),
    },
    unknown={
        "decided elsewhere": JudgedResource(SUBNET, {"prohibitPublicIpOnVnic": Unknown("prohibitPublicIpOnVnic")}),
        "an instance's, decided elsewhere": JudgedResource(
            INSTANCE, {"associatePublicIpAddress": Unknown("associatePublicIpAddress")}
        ),
    },
)
