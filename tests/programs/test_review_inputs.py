# SPDX-License-Identifier: Apache-2.0
"""Another value of any input that a provider's schema has is no silence: a section says what it means, or the review
names it. Only what the row calls plain says nothing."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from pulumi._types import input_type_py_to_pulumi_names

from catalog.platforms import platform_in
from components.oci.types.oci_resource_type import snake_case
from components.platform.review import ReviewedResource, Snapshot
from components.values.resource_types import ResourceType, all_resource_types, input_names
from schemas.judge import judge_file
from tests.support.counts import drawn
from tests.support.examples import STACKS
from trainyard.review.evaluate import CheckFindings, ReviewContext, review_snapshots
from trainyard.review.recorder import RecordingProcess

EXAMPLES = ("oci-pytorch-ddp", "oci-existing", "aws-dl1-resnet", "openpai-ddp-nccl")
KNOWN = {token: row for token, row in all_resource_types().items() if row.in_reviews and not token.startswith("pulumi")}
_GROUP_RULE = "oci:Core/networkSecurityGroupSecurityRule:NetworkSecurityGroupSecurityRule"
_EGRESS_RULE = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
# Inputs of resources that no example has, or none in which every input means something.
MADE: Mapping[str, Mapping[str, Any]] = {
    _EGRESS_RULE: {
        "securityGroupId": "sg-1", "ipProtocol": "tcp", "fromPort": 1, "toPort": 9, "cidrIpv4": "10.0.0.0/8",
    },
    _GROUP_RULE: {
        "networkSecurityGroupId": "ocid1.networksecuritygroup.oc1..one", "direction": "INGRESS", "protocol": "6",
        "source": "10.0.0.0/8", "sourceType": "CIDR_BLOCK",
        "tcpOptions": {"destinationPortRange": {"min": 1, "max": 9}},
    },
}  # fmt: skip
# Harmful values that have a form. Of any other input, any other value is tried.
_PORT = {"destinationPortRange": {"min": 22, "max": 22}}
HARMFUL: Mapping[str, Any] = {
    "aws:ec2/routeTable:RouteTable routes": [{"cidrBlock": "0.0.0.0/0", "natGatewayId": "nat-1"}],
    "aws:iam/role:Role inlinePolicies": [
        {"name": "more", "policy": '{"Statement": {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}}'}
    ],
    "aws:cloudwatch/logGroup:LogGroup retentionInDays": 1,
    "aws:ecr/repository:Repository imageTagMutabilityExclusionFilters": [{"filter": "*", "filterType": "WILDCARD"}],
    "aws:s3/bucket:Bucket grants": [{"type": "Group", "uri": "AllUsers", "permissions": ["READ"]}],
    "oci:Logging/log:Log retentionDuration": 1,
    "aws:ec2/instance:Instance ebsBlockDevices": [{"deviceName": "/dev/sdb", "snapshotId": "snap-1"}],
    "aws:ec2/instance:Instance metadataOptions": {"httpTokens": "optional"},
    "aws:ec2/instance:Instance rootBlockDevice": {"encrypted": False},
    f"{_EGRESS_RULE} ipProtocol": "udp",
    f"{_GROUP_RULE} direction": "EGRESS",
    f"{_GROUP_RULE} protocol": "17",
    f"{_GROUP_RULE} tcpOptions": _PORT,
    "oci:DataScience/job:Job jobConfigurationDetails": {"commandLineArguments": "mallory"},
    "oci:DataScience/job:Job jobInfrastructureConfigurationDetails": {"shapeName": "BM.GPU.H100.8"},
    "oci:DataScience/job:Job jobNodeConfigurationDetails": {"jobNetworkConfiguration": {}},
    "oci:Core/routeTable:RouteTable routeRules": [
        {"destination": "0.0.0.0/0", "networkEntityId": "ocid1.internetgateway.oc1..one"}
    ],
}


# Inputs without meaning beside the others of the resource above.
WITHOUT_MEANING = frozenset(
    {
        f"{_GROUP_RULE} {path}"
        for path in input_names("destination destinationType sourceType stateless udpOptions icmpOptions")
    }
)


@pytest.fixture(scope="module")
def snapshots() -> tuple[Snapshot, ...]:
    found = []
    with RecordingProcess(STACKS.parent) as process:
        for name in EXAMPLES:
            file = STACKS / f"Pulumi.{name}.yaml"
            found.append(process.record(file, platform_in(judge_file(file).source.data["config"])).snapshot)
    return tuple(found)


def inputs_of_provider(token: str) -> tuple[str, ...]:
    """The names of all inputs of a type, by the provider's schema."""
    package, path, name = token.split(":")
    if package == "trainyard":
        return ("nodes", "image")
    folder, _, file = path.partition("/")
    with warnings.catch_warnings():
        # Importing a module of pulumi_aws imports deprecated ones, too.
        warnings.simplefilter("ignore")
        module = importlib.import_module(f"pulumi_{package}.{folder.lower()}.{snake_case(file)}")
    return tuple(input_type_py_to_pulumi_names(getattr(module, f"{name}Args")).values())


def another_value(value: Any) -> Any:
    """A value of the same kind. What no example has is a text, or where the schema wants lists or mappings, HARMFUL has
    it."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, list):
        return [*value, another_value(value[0])] if value else ["mallory"]
    if isinstance(value, Mapping):
        return {**value, **{key: another_value(item) for key, item in [*value.items()][:1]}, "mallory": "mallory"}
    return "mallory"


def with_another_value(token: str, path: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {**inputs, path: HARMFUL.get(f"{token} {path}", another_value(inputs.get(path)))}


def changed_sides(token: str, path: str, snapshots: tuple[Snapshot, ...]) -> tuple[Snapshot, Snapshot]:
    for side in () if token in MADE else snapshots:
        if resources := side.of(token):
            changed = replace(resources[0], inputs=with_another_value(token, path, resources[0].inputs))
            rest = tuple(resource for resource in side.resources if resource.urn != changed.urn)
            return side, replace(side, resources=(*rest, changed))
    side = next(side for side in snapshots if side.platform.startswith(token.partition(":")[0]))
    made = ReviewedResource(
        token, "more", f"urn:pulumi:dev::trainyard::{token}::more", "", MADE.get(token, {}), id="more"
    )
    changed = replace(made, inputs=with_another_value(token, path, made.inputs))
    return replace(side, resources=(*side.resources, made)), replace(side, resources=(*side.resources, changed))


def silent_inputs(token: str, row: ResourceType, snapshots: tuple[Snapshot, ...]) -> Iterator[str]:
    assert row.in_reviews
    plain = input_names(" ".join(row.in_reviews.plain.values())) | {row.tags}
    for path in inputs_of_provider(token):
        if path in plain or f"{token} {path}" in WITHOUT_MEANING:
            continue
        before, after = changed_sides(token, path, snapshots)
        review = review_snapshots(before, after, "changed", CheckFindings("file"), ReviewContext(date(2026, 11, 26)))
        if not review.has_decisions:
            yield path


@pytest.mark.parametrize("token", drawn(sorted(KNOWN), 16))
def test_another_value_of_no_input_is_silent(token: str, snapshots: tuple[Snapshot, ...]) -> None:
    assert list(silent_inputs(token, KNOWN[token], snapshots)) == []
