# SPDX-License-Identifier: Apache-2.0
"""Training nodes need no public addresses: they reach the outside through a gateway."""

from collections.abc import Mapping
from typing import Any

from policies.rule import (
    PASS,
    Judge,
    JudgedResource,
    PolicyRule,
    PolicyVerdict,
    Unknown,
    by_type,
    fail_because,
    verdict_of_either,
    verdict_on_every,
)

SUBNET = "oci:Core/subnet:Subnet"
# Either of them prevents public addresses. OCI's default for both is false.
PROHIBITIONS = ("prohibitPublicIpOnVnic", "prohibitInternetIngress")
AWS_SUBNET = "aws:ec2/subnet:Subnet"
INSTANCE = "aws:ec2/instance:Instance"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
ADDRESS = "aws:ec2/eip:Eip"
# The tag with the reason of an address: the stack asks for it, or it is of a NAT gateway, which lets nobody in.
TAG = "public-address"
REASONS = ("chosen", "nat")


def judge_subnet(resource: JudgedResource) -> PolicyVerdict:
    def prohibited(by: str) -> PolicyVerdict:
        return PASS if resource.properties.get(by) else fail_because("its nodes may get public addresses")

    return verdict_of_either(*(lambda by=by: prohibited(by) for by in PROHIBITIONS))


def judge_aws_subnet(resource: JudgedResource) -> PolicyVerdict:
    if not is_set(resource.properties.get("mapPublicIpOnLaunch")):
        return PASS
    return with_reason(resource, "its nodes get public addresses")


def judge_instance_address(resource: JudgedResource) -> PolicyVerdict:
    if not is_set(resource.properties.get("associatePublicIpAddress")):
        return PASS
    return with_reason(resource, "it gets a public address")


def judge_template_addresses(resource: JudgedResource) -> PolicyVerdict:
    def judge_interface(interface: Mapping[str, Any]) -> PolicyVerdict:
        if not is_set(interface.get("associatePublicIpAddress")):
            return PASS
        return with_reason(resource, "its nodes get public addresses")

    return verdict_on_every(judge_interface, resource.properties.get("networkInterfaces") or ())


def judge_address(resource: JudgedResource) -> PolicyVerdict:
    return with_reason(resource, "nobody asked for this public address")


def with_reason(resource: JudgedResource, otherwise: str) -> PolicyVerdict:
    return PASS if resource.tags.get(TAG) in REASONS else fail_because(otherwise)


def is_set(value: Any) -> bool:
    """A launch template has texts in place of booleans."""
    return value is not None and str(value).lower() == "true"


ROWS: Mapping[str, Judge] = {
    SUBNET: judge_subnet,
    AWS_SUBNET: judge_aws_subnet,
    INSTANCE: judge_instance_address,
    TEMPLATE: judge_template_addresses,
    ADDRESS: judge_address,
}

RULE = PolicyRule(
    id="public-addresses",
    level="mandatory",
    asks="Nodes have no public addresses, unless somebody asked for one.",
    remedy="set prohibitPublicIpOnVnic: true on a subnet of OCI, and leave public addresses away on AWS: nodes go out"
    f" through a gateway; an address that you mean has the tag `{TAG}: chosen`",
    types=tuple(ROWS),
    judge=by_type(ROWS),
    passes={
        "private": JudgedResource(SUBNET, {"prohibitPublicIpOnVnic": True}),
        "no way in": JudgedResource(SUBNET, {"prohibitInternetIngress": True, "prohibitPublicIpOnVnic": Unknown()}),
        "AWS's default": JudgedResource(AWS_SUBNET, {"cidrBlock": "10.20.0.0/24"}),
        "the address of a NAT gateway": JudgedResource(ADDRESS, {"domain": "vpc", "tags": {TAG: "nat"}}),
        "asked for": JudgedResource(INSTANCE, {"associatePublicIpAddress": True, "tags": {TAG: "chosen"}}),
        "EFA without addresses": JudgedResource(TEMPLATE, {"networkInterfaces": [{"interfaceType": "efa"}]}),
    },
    fails={
        "not set": JudgedResource(SUBNET, {"cidrBlock": "10.20.0.0/24"}),
        "public": JudgedResource(SUBNET, {"prohibitPublicIpOnVnic": False, "prohibitInternetIngress": False}),
        "for all of a subnet": JudgedResource(AWS_SUBNET, {"mapPublicIpOnLaunch": True}),
        "an instance": JudgedResource(INSTANCE, {"associatePublicIpAddress": True}),
        "by a template": JudgedResource(TEMPLATE, {"networkInterfaces": [{"associatePublicIpAddress": "true"}]}),
        "without a reason": JudgedResource(ADDRESS, {"domain": "vpc"}),
        "for another reason": JudgedResource(ADDRESS, {"domain": "vpc", "tags": {TAG: "handy"}}),
    },
    unknown={
        "decided elsewhere": JudgedResource(SUBNET, {"prohibitPublicIpOnVnic": Unknown("prohibitPublicIpOnVnic")}),
        "an instance's, decided elsewhere": JudgedResource(
            INSTANCE, {"associatePublicIpAddress": Unknown("associatePublicIpAddress")}
        ),
    },
)
