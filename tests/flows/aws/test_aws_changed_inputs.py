# SPDX-License-Identifier: Apache-2.0
"""Changes every plain input of the local cloud's `aws` plugin: it can be read back, replaces the resource, or is
refused."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_origin

import pytest
from pulumi import _types

from components.aws.types import SERVED_TYPES
from components.platform.values import Properties
from localcloud.control import Cloud
from tests.support.aws_clients import AwsClients
from tests.support.aws_plugin_world import (
    ASSOCIATION,
    CAPACITY,
    CASES,
    EGRESS,
    EIP,
    ENDPOINT,
    GATEWAY,
    GROUP,
    INGRESS,
    INSTANCE,
    LOG_GROUP,
    NAT,
    OBJECT,
    PLACEMENT,
    POLICY,
    PROFILE,
    REPOSITORY,
    ROLE,
    ROUTE,
    ROUTES,
    SECRET,
    SUBNET,
    TEMPLATE,
    VPC,
    aws_world,
    document,
)  # fmt: skip
from tests.support.aws_types import NOT_TAKEN, official
from tests.support.counts import FIRST, wanted
from tests.support.plugin_world import World
from tests.support.provider_client import Failed, Resource

pytestmark = pytest.mark.filterwarnings("ignore:.* has been deprecated:DeprecationWarning")

Key = tuple[str, str]
_PEERS = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")
_OTHERS = {"cidrIpv4": "10.4.0.0/16", "cidrIpv6": "fd00::/64", "prefixListId": "pl-0123456789abcdef0"}
_ENDS = {"endDate": "2030-01-01T00:00:00Z", "endDateType": "limited"}
_UNCHANGEABLE = "cannot change"


def _second(name: str, token: str) -> Callable[[World], Properties]:
    return lambda world: {name: world.another(token).id}


def _plain(**values: Any) -> Callable[[World], Properties]:
    return lambda world: values


# Values that need a certain form or the name of an existing resource, and inputs that change together.
VALUES: Mapping[Key, Callable[[World], Properties]] = {
    (VPC, "instanceTenancy"): _plain(instanceTenancy="dedicated"),
    (GATEWAY, "vpcId"): _second("vpcId", VPC),
    (ENDPOINT, "vpcEndpointType"): _plain(vpcEndpointType="Interface"),
    (ENDPOINT, "policy"): _plain(policy=document("s3:GetObject")),
    (NAT, "connectivityType"): _plain(connectivityType="private"),
    (EIP, "instance"): lambda world: {"instance": world.id(INSTANCE)},
    (EGRESS, "ipProtocol"): _plain(ipProtocol="tcp", fromPort=1, toPort=2),
    (EGRESS, "cidrIpv4"): _plain(cidrIpv4="10.3.0.0/16"),
    (INGRESS, "referencedSecurityGroupId"): _second("referencedSecurityGroupId", GROUP),
    **{(INGRESS, name): _plain(**{"referencedSecurityGroupId": None, name: peer}) for name, peer in _OTHERS.items()},
    **{
        (EGRESS, name): _plain(**{"cidrIpv4": None, name: peer}) for name, peer in _OTHERS.items() if name != "cidrIpv4"
    },
    (EGRESS, "referencedSecurityGroupId"): _plain(cidrIpv4=None, referencedSecurityGroupId="sg-0123456789abcdef0"),
    (SUBNET, "privateDnsHostnameTypeOnLaunch"): _plain(privateDnsHostnameTypeOnLaunch="resource-name"),
    (CAPACITY, "endDateType"): _plain(endDateType="unlimited", endDate=None),
    (ROUTE, "gatewayId"): _second("gatewayId", GATEWAY),
    (ASSOCIATION, "routeTableId"): _second("routeTableId", ROUTES),
    (CAPACITY, "endDate"): _plain(**_ENDS),
    (CAPACITY, "instanceMatchCriteria"): _plain(instanceMatchCriteria="targeted"),
    (PLACEMENT, "spreadLevel"): _plain(spreadLevel="rack"),
    (TEMPLATE, "defaultVersion"): _plain(defaultVersion=1),
    (TEMPLATE, "ebsOptimized"): _plain(ebsOptimized="true"),
    (TEMPLATE, "instanceInitiatedShutdownBehavior"): _plain(instanceInitiatedShutdownBehavior="terminate"),
    (TEMPLATE, "instanceType"): _plain(instanceType="t3.micro"),
    (TEMPLATE, "userData"): _plain(userData="I2Nsb3VkLWNvbmZpZwo="),
    (OBJECT, "checksumAlgorithm"): _plain(checksumAlgorithm="SHA256"),
    (OBJECT, "contentBase64"): _plain(contentBase64="cHJpbnQ=", content=None),
    (OBJECT, "serverSideEncryption"): _plain(serverSideEncryption="AES256"),
    (OBJECT, "kmsKeyId"): lambda world: {"kmsKeyId": AwsClients(world.cloud)["kms"].create_key()["KeyMetadata"]["Arn"]},
    (OBJECT, "storageClass"): _plain(storageClass="STANDARD_IA"),
    (REPOSITORY, "imageTagMutability"): _plain(imageTagMutability="MUTABLE"),
    (PROFILE, "role"): _second("role", ROLE),
    (LOG_GROUP, "logGroupClass"): _plain(logGroupClass="INFREQUENT_ACCESS"),
    (LOG_GROUP, "retentionInDays"): _plain(retentionInDays=60),
    (SECRET, "recoveryWindowInDays"): _plain(recoveryWindowInDays=7),
    (ROLE, "maxSessionDuration"): _plain(maxSessionDuration=7200),
    (ROLE, "assumeRolePolicy"): _plain(assumeRolePolicy=document("sts:AssumeRole", principal="ssm.amazonaws.com")),
    (ROLE, "permissionsBoundary"): lambda world: {"permissionsBoundary": world.id(POLICY)},
}
# Inputs that the local AWS does not store, or refuses. The plugin's call is right, but nothing can be read back.
NOT_KEPT: frozenset[Key] = frozenset(
    {
        (ENDPOINT, "ipAddressType"), (EIP, "networkInterface"), (EIP, "domain"), (ROUTE, "egressOnlyGatewayId"),
        (ROUTE, "networkInterfaceId"), (ROUTE, "vpcPeeringConnectionId"), (SECRET, "policy"),
        (OBJECT, "etag"),
    }
)  # fmt: skip
# AWS cannot change the kind of a rule's peer.
ANOTHER_KIND: frozenset[Key] = frozenset(
    {*((INGRESS, name) for name in _PEERS[:3]), *((EGRESS, name) for name in _PEERS[1:])}
)
# Inputs that AWS cannot change, although the provider's schema allows it.
REFUSED: frozenset[Key] = frozenset({(VPC, "assignGeneratedIpv6CidrBlock")})


@pytest.fixture(scope="module")
def world(shared_cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with aws_world(shared_cloud, tmp_path_factory.mktemp("world")) as made:
        yield made


def another(kind: Any, now: Any) -> Any:
    """Another value of this type. None for lists and structures."""
    if get_origin(kind) is Mapping:
        return {**(now or {}), "changed": "yes"}
    if kind is bool:
        return not now
    if kind in (int, float):
        return kind((now or 1) + 1)
    return f"{now or 'was'}-changed" if kind is str else None


def changed(world: World, made: Resource, token: str, name: str, kind: Any, wrong: list[str]) -> Resource:
    row = VALUES.get((token, name))
    change = row(world) if row else {name: another(kind, made.inputs.get(name))}
    if change[name] is None and not row:
        return made
    inputs = {**made.inputs, **change}
    try:
        diff = world.engine.diff(made, inputs)
        replacing = {path.split(".")[0] for path in SERVED_TYPES[token].replaced_by} | {"region"}
        replaces = name in replacing or (token, name) in ANOTHER_KIND
        if bool(diff.replaces) != replaces or not diff.detailedDiff:
            wrong.append(f"{name}: replaces {list(diff.replaces)}, changes {list(diff.detailedDiff)}")
        if replaces:
            return made
        made = world.engine.update(made, inputs)
    except (Failed, AssertionError) as error:
        if (token, name) not in REFUSED or _UNCHANGEABLE not in str(error):
            wrong.append(f"{name}: refused: {error}")
        return made
    seen = world.engine.refresh(made)
    live = {} if seen is None else seen.inputs
    left = {key: value for key, value in change.items() if live.get(key) != value}
    wrong += [f"{key}: asked for {value!r}, and there is {live.get(key)!r}" for key, value in left.items()]
    return made


TOKENS = sorted(set(SERVED_TYPES) - {INSTANCE})  # an instance changes in tests/flows


@pytest.mark.parametrize("token", random.Random(FIRST).sample(TOKENS, wanted(6, len(TOKENS))))
def test_a_change_is_made_or_replaces_or_is_refused(world: World, token: str) -> None:
    made = world.engine.create(token, "changing", CASES[token].inputs(world))
    wrong: list[str] = []
    try:
        for name, kind in _types.input_type_types(official(token, "Args")).items():
            if name not in NOT_TAKEN.get(token, ()) and (token, name) not in NOT_KEPT:
                made = changed(world, made, token, name, kind, wrong)
    finally:
        world.engine.delete(made)
    assert not wrong, "\n".join(wrong)
