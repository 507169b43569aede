# SPDX-License-Identifier: Apache-2.0
"""AWS's responses to a program, as far as they can be known from the stack file. Other values are marked as unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from components.aws.client.functions import GET_CAPACITY_RESERVATION
from components.aws.plan import TAKEN
from components.platform.review import OfflineCloud, OfflineStack, unknown_value

# The prefixes of EC2's ids, for types where it is not the type's name in lower case.
PREFIXES = {
    "Instance": "i", "LaunchTemplate": "lt", "RouteTable": "rtb", "SecurityGroup": "sg", "InternetGateway": "igw",
    "NatGateway": "nat", "Eip": "eipalloc", "VpcEndpoint": "vpce", "RouteTableAssociation": "rtbassoc",
    "SecurityGroupIngressRule": "sgr", "SecurityGroupEgressRule": "sgr", "EipAssociation": "eipassoc",
}  # fmt: skip
# Shown in place of a machine's id.
_ID = "its id is not known here"
ACCOUNT = "trainyard:account"
_NETWORK = "trainyard:network"
_Answer = Callable[[Mapping[str, Any], OfflineStack], Mapping[str, Any]]


class AwsOffline(OfflineCloud):
    def prepare(self) -> None:
        import components.aws.resources.deploy  # noqa: F401
        from components.aws.resources.context import make_aws_lazy

        make_aws_lazy()

    def identify(self, token: str, name: str, inputs: Mapping[str, Any]) -> str:
        kind = token.rpartition(":")[2]
        if token.startswith("aws:iam/") or kind in ("Repository", "LogGroup", "PlacementGroup"):
            return str(inputs.get("name") or name)
        if token.startswith("aws:s3/"):
            return str(inputs.get("bucket") or name)
        return f"{PREFIXES.get(kind, kind.lower())}-{name}"

    def outputs(self, token: str, name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        match token.rpartition(":")[2]:
            case "Policy":
                return {"arn": f"arn:aws:iam::{unknown_value('account')}:policy/{inputs['name']}"}
            case "VpcEndpoint":
                return {"prefixListId": f"pl-{name}"}
            case "Instance":
                return {"primaryNetworkInterfaceId": f"eni-{name}", "arn": f"arn:aws:ec2:::instance/{_ID}"}
            case "Eip":
                return {"publicIp": unknown_value("public address"), "allocationId": f"eipalloc-{name}"}
            case "SecretVersion":
                return {"versionId": f"version-{name}"}
            case "KeyPair":
                return {key: unknown_value(f"{key} of {name}") for key in ("publicKey", "privateKey", "fingerprint")}
        return {}

    def answer(self, function: str, arguments: Mapping[str, Any], stack: OfflineStack) -> Mapping[str, Any]:
        if function in _ANSWERS:
            return _ANSWERS[function](arguments, stack)
        return dict(arguments) if function in _ECHOED else super().answer(function, arguments, stack)

    def borrowed(self) -> tuple[str, ...]:
        return tuple(output for outputs in TAKEN.values() for output in outputs)


def _answer_account(arguments: Mapping[str, Any], stack: OfflineStack) -> Mapping[str, Any]:
    account = str(stack.config.get(ACCOUNT) or unknown_value("account"))
    return {**arguments, "accountId": account, "id": account}


def _answer_zones(arguments: Mapping[str, Any], stack: OfflineStack) -> Mapping[str, Any]:
    network = stack.config.get(_NETWORK)
    named = network.get("zone") if isinstance(network, Mapping) else None
    # The zone that AWS would choose comes first, because the program takes the first one.
    zones = [unknown_value("zone"), *([str(named)] if named else [])]
    return {**arguments, "locations": zones, "instanceTypes": [""] * len(zones)}


def _answer_block(arguments: Mapping[str, Any], stack: OfflineStack) -> Mapping[str, Any]:
    return {"availabilityZone": _answer_zones(arguments, stack)["locations"][-1]}


_ANSWERS: Mapping[str, _Answer] = {
    "aws:index/getCallerIdentity:getCallerIdentity": _answer_account,
    "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings": _answer_zones,
    "aws:ec2/getAmi:getAmi": lambda arguments, _: {**arguments, "id": arguments["filters"][0]["values"][0]},
    "aws:ec2/getSubnet:getSubnet": lambda arguments, _: {**arguments, "availabilityZone": unknown_value("zone")},
    "aws:ssm/getParameter:getParameter": lambda arguments, _: {
        **arguments,
        "value": unknown_value(f"image of {arguments.get('name')}"),
    },
    GET_CAPACITY_RESERVATION: _answer_block,
}
# Their answers repeat what was asked.
_ECHOED = frozenset({
    "aws:ec2/getSecurityGroup:getSecurityGroup", "aws:ec2/getVpc:getVpc", "aws:s3/getBucket:getBucket",
    "aws:ecr/getRepository:getRepository", "aws:iam/getInstanceProfile:getInstanceProfile",
})  # fmt: skip


OFFLINE = AwsOffline()
