# SPDX-License-Identifier: Apache-2.0
"""The responses of AWS for a program that runs with Pulumi's mocks: ids, and the results of functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pulumi

ACCOUNT = "123456789012"


def outputs(token: str, name: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs that AWS adds to the inputs of a new resource, as far as components read them."""
    match token.rsplit(":", 1)[-1]:
        case "Policy":
            return {"arn": f"arn:aws:iam::{ACCOUNT}:policy/{inputs['name']}"}
        case "VpcEndpoint":
            return {"prefixListId": f"pl-{name}"}
        case "Instance":
            return {"primaryNetworkInterfaceId": f"eni-{name}"}
        case "Eip":
            return {"publicIp": "203.0.113.9", "allocationId": f"eipalloc-{name}"}
        case "SecretVersion":
            return {"versionId": f"version-{name}"}
        case "KeyPair":
            return {"publicKey": "ssh-rsa AAAA", "privateKey": "-----BEGIN", "fingerprint": "SHA256:abc"}
    return {}


def _refuse(arguments: Mapping[str, Any]) -> None:
    if any("nowhere" in str(value) for value in arguments.values()):
        raise LookupError("operation error EC2: Describe, api error NotFound: it does not exist")


def _read(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A resource by its name or id. Every resource exists unless its name says that it does not. Its name also says to
    which stack it belongs."""
    _refuse(arguments)
    theirs = any("theirs" in str(value) for value in arguments.values())
    tags = {"managed-by": "trainyard", "stack": "theirs" if theirs else pulumi.get_stack()}
    return {**arguments, "tags": tags}


def _theirs(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A resource by its name. It exists only if its name says that it is another stack's."""
    if not any("theirs" in str(value) for value in arguments.values()):
        raise LookupError("operation error: api error NotFound: it does not exist")
    return _read(arguments)


def _zones(arguments: Mapping[str, Any]) -> dict[str, Any]:
    region = pulumi.Config("aws").require("region")
    zones = [f"{region}{letter}" for letter in "ab"]
    return {**arguments, "locations": zones, "instanceTypes": ["dl1.24xlarge"] * len(zones)}


def _block(arguments: Mapping[str, Any]) -> dict[str, Any]:
    zone = f"{pulumi.Config('aws').require('region')}a"
    return {**arguments, "reservationType": "capacity-block", "availabilityZone": zone}


def _image(arguments: Mapping[str, Any]) -> dict[str, Any]:
    image = arguments["filters"][0]["values"][0]
    if image.endswith("dead"):
        raise LookupError("Your query returned no results. Please change your search criteria and try again.")
    disk = {"deviceName": "/dev/sda1", "ebs": {"volume_size": "100", "snapshot_id": "snap-1"}}
    return {**arguments, "id": image, "rootDeviceName": "/dev/sda1", "blockDeviceMappings": [disk]}


def _subnet(arguments: Mapping[str, Any]) -> dict[str, Any]:
    region = pulumi.Config("aws").require("region")
    zone = f"{region}{'f' if str(arguments['id']).endswith('f') else 'a'}"
    return {**_read(arguments), "availabilityZone": zone, "vpcId": "vpc-company"}


def _group(arguments: Mapping[str, Any]) -> dict[str, Any]:
    vpc = "vpc-other" if str(arguments["id"]).endswith("f") else "vpc-company"
    return {**_read(arguments), "vpcId": vpc}


def _group_rules(arguments: Mapping[str, Any]) -> dict[str, Any]:
    group = arguments["filters"][0]["values"][0]
    return {**arguments, "ids": [f"{group}/in"] if group.endswith("e") else [f"{group}/in", f"{group}/out"]}


def _group_rule(arguments: Mapping[str, Any]) -> dict[str, Any]:
    group, _, direction = arguments["securityGroupRuleId"].partition("/")
    return {**arguments, "ipProtocol": "-1", "referencedSecurityGroupId": group, "isEgress": direction == "out"}


FUNCTIONS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "aws:index/getCallerIdentity:getCallerIdentity": lambda _: {"accountId": ACCOUNT, "id": ACCOUNT},
    "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings": _zones,
    "trainyard:index:getCapacityReservation": _block,
    "aws:ec2/getAmi:getAmi": _image,
    "aws:ec2/getSubnet:getSubnet": _subnet,
    "aws:ec2/getSecurityGroup:getSecurityGroup": _group,
    "aws:ec2/getVpc:getVpc": lambda arguments: {
        **_read(arguments),
        "cidrBlockAssociations": [{"cidrBlock": "10.0.0.0/8"}],
    },
    "aws:vpc/getSecurityGroupRules:getSecurityGroupRules": _group_rules,
    "aws:vpc/getSecurityGroupRule:getSecurityGroupRule": _group_rule,
    "aws:ssm/getParameter:getParameter": lambda one: {**_read(one), "value": "ami-0f0e0d0c0b0a09080"},
    "aws:s3/getBucket:getBucket": _read,
    "aws:ecr/getRepository:getRepository": _read,
    "aws:iam/getInstanceProfile:getInstanceProfile": _read,
    "aws:cloudwatch/getLogGroup:getLogGroup": _theirs,
    "aws:ec2/getLaunchTemplate:getLaunchTemplate": _theirs,
    "aws:iam/getRole:getRole": _theirs,
    "aws:iam/getPolicy:getPolicy": _theirs,
    "aws:ec2/getInstances:getInstances": lambda arguments: {**arguments, "ids": []},
}
