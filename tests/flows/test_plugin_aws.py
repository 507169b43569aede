# SPDX-License-Identifier: Apache-2.0
"""Every type of the local cloud's `aws` plugin, through the provider protocol, against the local cloud."""

import json
import re
from collections.abc import Callable, Iterator, Mapping

import pytest

from components.aws.types import SERVED_TYPES
from components.aws.types.functions import FUNCTIONS
from components.platform.values import UNKNOWN, Properties, Secret
from localcloud.aws.plugin.plugin import LocalAws
from localcloud.control import Cloud
from tests.support.aws_calls import judge_function, judge_life, watched
from tests.support.aws_plugin_world import (
    ACCESS_BLOCK,
    BUCKET,
    CASES,
    EIP,
    GROUP,
    INGRESS,
    INSTANCE,
    LOG_GROUP,
    NAT,
    OBJECT,
    POLICY,
    PROFILE,
    REPOSITORY,
    ROLE,
    ROUTE,
    ROUTES,
    SECRET,
    SUBNET,
    TEMPLATE,
    VERSION,
    VPC,
    aws_world,
    image,
    template_inputs,
)  # fmt: skip
from tests.support.counts import wanted
from tests.support.plugin_world import World, live
from tests.support.provider_client import Failed, engine_side

Looked = list[tuple[Properties, Properties]]
# The arguments of each function, and the expected parts of its result.
LOOKUPS: Mapping[str, Callable[[World], Looked]] = {
    "aws:index/getCallerIdentity:getCallerIdentity": lambda w: [({}, {"accountId": "123456789012"})],
    "aws:ec2/getVpc:getVpc": lambda w: [({"id": w.id(VPC)}, {"id": w.id(VPC), "cidrBlock": "10.0.0.0/16"})],
    "aws:ec2/getVpcs:getVpcs": lambda w: [({"tags": {"none": "such"}}, {"ids": []})],
    "aws:ec2/getSubnet:getSubnet": lambda w: [
        ({"id": w.id(SUBNET)}, {"id": w.id(SUBNET), "vpcId": w.id(VPC), "availabilityZone": "us-east-1a"})
    ],
    "aws:ec2/getSubnets:getSubnets": lambda w: [
        ({"filters": [{"name": "subnet-id", "values": [w.id(SUBNET)]}]}, {"ids": [w.id(SUBNET)]})
    ],
    "aws:ec2/getSecurityGroup:getSecurityGroup": lambda w: [
        ({"id": w.id(GROUP)}, {"id": w.id(GROUP), "name": w.resource(GROUP).outputs["name"], "vpcId": w.id(VPC)})
    ],
    "aws:vpc/getSecurityGroupRule:getSecurityGroupRule": lambda w: [
        ({"securityGroupRuleId": w.id(INGRESS)}, {"isEgress": False, "referencedSecurityGroupId": w.id(GROUP)})
    ],
    "aws:vpc/getSecurityGroupRules:getSecurityGroupRules": lambda w: [
        ({"filters": [{"name": "group-id", "values": ["sg-0123456789abcdef0"]}]}, {"ids": []})
    ],
    "aws:ec2/getRouteTable:getRouteTable": lambda w: [({"routeTableId": w.id(ROUTES)}, {"vpcId": w.id(VPC)})],
    "aws:ec2/getRouteTables:getRouteTables": lambda w: [({"tags": {"none": "such"}}, {"ids": []})],
    "aws:ec2/getAmi:getAmi": lambda w: [
        ({"filters": [{"name": "image-id", "values": [image(w)]}], "mostRecent": True}, {"imageId": image(w)})
    ],
    # The plugin tags its own resources, and the next attempt adopts them.
    "aws:ec2/getInstances:getInstances": lambda w: [
        (
            {"filters": [{"name": "instance-id", "values": [w.id(INSTANCE)]}], "instanceStateNames": ["running"]},
            {"ids": []},
        )
    ],
    "aws:ec2/getLaunchTemplate:getLaunchTemplate": lambda w: [
        ({"name": w.resource(TEMPLATE).outputs["name"]}, {"id": w.id(TEMPLATE)})
    ],
    "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings": lambda w: [
        (
            {"locationType": "availability-zone", "filters": [{"name": "instance-type", "values": ["dl1.24xlarge"]}]},
            {"instanceTypes": ["dl1.24xlarge", "dl1.24xlarge"], "locations": ["us-east-1a", "us-east-1c"]},
        )
    ],
    "aws:index/getAvailabilityZones:getAvailabilityZones": lambda w: [({"state": "available"}, {"state": "available"})],
    "aws:ssm/getParameter:getParameter": lambda w: [
        ({"name": "/aws/service/global-infrastructure/regions/us-east-1"}, {"value": "us-east-1"})
    ],
    "aws:ecr/getRepository:getRepository": lambda w: [
        ({"name": w.id(REPOSITORY)}, {"repositoryUrl": w.resource(REPOSITORY).outputs["repositoryUrl"]})
    ],
    "aws:s3/getBucket:getBucket": lambda w: [
        ({"bucket": w.id(BUCKET)}, {"arn": f"arn:aws:s3:::{w.id(BUCKET)}", "bucketRegion": "us-east-1"})
    ],
    "aws:iam/getRole:getRole": lambda w: [({"name": w.id(ROLE)}, {"arn": w.resource(ROLE).outputs["arn"]})],
    "aws:iam/getInstanceProfile:getInstanceProfile": lambda w: [({"name": w.id(PROFILE)}, {"roleName": w.id(ROLE)})],
    "aws:iam/getPolicy:getPolicy": lambda w: [
        ({"arn": w.id(POLICY)}, {"name": w.resource(POLICY).outputs["name"], "arn": w.id(POLICY)})
    ],
    "aws:secretsmanager/getSecret:getSecret": lambda w: [
        ({"name": w.resource(SECRET).outputs["name"]}, {"arn": w.id(SECRET), "id": w.id(SECRET)})
    ],
    "aws:cloudwatch/getLogGroup:getLogGroup": lambda w: [({"name": w.id(LOG_GROUP)}, {"retentionInDays": 30})],
}


@pytest.fixture(scope="module")
def world(shared_cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with aws_world(shared_cloud, tmp_path_factory.mktemp("world")) as made:
        yield made


def test_every_row_has_a_case() -> None:
    assert set(CASES) == set(SERVED_TYPES)


@pytest.mark.parametrize("token", CASES)
def test_a_resource_is_created_read_updated_and_deleted_with_the_providers_calls_only(world: World, token: str) -> None:
    """It makes the calls of the real provider, and no others."""
    case, inputs = CASES[token], CASES[token].inputs(world)
    seen = watched(world)
    live(seen, token)
    judge_life(token, inputs, case.change, seen.engine)  # type: ignore[arg-type]


def test_a_wrong_type_fails_at_the_preview_with_its_path(world: World) -> None:
    inputs = template_inputs(world)
    broken: list[tuple[Properties, str]] = [
        ({"networkInterfaces": [{"deviceIndex": "first"}]}, r"networkInterfaces\[0\].deviceIndex: .*valid types.*int"),
        ({"networkInterfaces": [{"deviceIndx": 0}]}, r"deviceIndx: .*did you mean `deviceIndex`"),
        ({"metadataOptions": {"httpTokens": "maybe"}}, r"metadataOptions.httpTokens: `maybe` .*required"),
        ({"imageIdd": "ami-1"}, r"imageIdd: .*does not support the input `imageIdd`.*Did you mean `imageId`"),
        ({"imageId": 5}, r"imageId: .*valid types.*str"),
    ]
    for change, words in broken:
        _, failures = world.engine.check(TEMPLATE, "it", {**inputs, **change})
        assert len(failures) == 1, failures
        assert re.search(words, failures[0], re.DOTALL), failures


def test_a_missing_input_is_named(world: World) -> None:
    for token, missing in (
        (SUBNET, "vpcId"),
        (ACCESS_BLOCK, "bucket"),
        (INGRESS, "ipProtocol"),
        (ROLE, "assumeRolePolicy"),
    ):
        inputs = {key: value for key, value in CASES[token].inputs(world).items() if key != missing}
        _, failures = world.engine.check(token, "it", inputs)
        assert [line.partition(":")[0] for line in failures] == [missing], failures


def test_unknown_inputs_are_checked_when_they_are_known(world: World) -> None:
    outputs = world.engine.preview(SUBNET, "it", {"vpcId": UNKNOWN, "cidrBlock": UNKNOWN, "tags": {"a": UNKNOWN}})
    assert outputs["vpcId"] is UNKNOWN
    assert outputs["arn"] is UNKNOWN
    assert outputs["region"] == "us-east-1"


def test_secret_inputs_of_a_resource_are_secret_outputs(world: World) -> None:
    made = world.engine.create(VERSION, "it", {"secretId": world.id(SECRET), "secretString": Secret("hush-hush")})
    seen = world.engine.refresh(made)
    assert seen is not None
    assert made.outputs["secretString"] == seen.inputs["secretString"] == Secret("hush-hush")
    imported = world.engine.import_(VERSION, "it", made.id)
    assert imported is not None
    assert imported.outputs["secretString"] == Secret("hush-hush")
    assert "hush-hush" not in world.engine.heard.everything


# One type for each way to recognise what an attempt made: by tag, by name, by its parent, by a token. `make torture`
# takes all types.
_WAYS = (VPC, INSTANCE, BUCKET, ROLE, INGRESS, ROUTE, NAT, VERSION)


@pytest.mark.parametrize("token", CASES if wanted(0, 1) else _WAYS)
def test_a_create_repeated_after_a_kill_makes_nothing_twice(world: World, token: str) -> None:
    """The plugin was killed after the cloud had made it, before the engine heard of it."""
    inputs = CASES[token].inputs(world)
    first = world.engine.create(token, "cut", inputs)
    with engine_side(LocalAws()) as engine:
        engine.configure()
        again = engine.create(token, "cut", inputs)
    world.engine.delete(again)
    assert again.id == first.id
    assert again.outputs == first.outputs
    if token == INSTANCE:
        # AWS still knows an attempt's client token after its resource was deleted.
        anew = world.engine.create(token, "cut", inputs)
        world.engine.delete(anew)
        assert anew.id != first.id
    assert (world.engine.refresh(first) is None) != CASES[token].stays


@pytest.mark.parametrize("token", [VPC, SUBNET, EIP, INSTANCE])
def test_a_replacement_with_equal_inputs_is_a_new_resource(world: World, token: str) -> None:
    inputs = CASES[token].inputs(world) | ({"cidrBlock": "10.0.200.0/24"} if token == SUBNET else {})
    first = world.engine.create(token, "same", inputs)
    more = {"cidrBlock": "10.0.201.0/24"} if token == SUBNET else {}
    second = world.engine.create(token, "same", inputs | more, old=first.inputs | more)
    world.engine.delete(first)
    world.engine.delete(second)
    assert second.id != first.id


TAKEN: Mapping[str, str] = {
    BUCKET: r"trainyard:bucket: \{ existing: .*pulumi import --stack test aws:s3/bucket:Bucket",
    REPOSITORY: r"trainyard:registry: \{ existing: vision",
    LOG_GROUP: r"pulumi import --stack test aws:cloudwatch/logGroup:LogGroup other /trainyard",
    ROLE: r"EntityAlreadyExists",
    GROUP: r"InvalidGroup.Duplicate",
}


@pytest.mark.parametrize("token", TAKEN)
def test_resources_of_others_are_never_adopted(world: World, token: str) -> None:
    taken = world.resource(token)
    if token == BUCKET:
        world.resource(OBJECT)
    with pytest.raises(Failed, match=f"(?s){TAKEN[token]}"):
        world.engine.create(token, "other", {**taken.inputs, "tags": {"team": "others"}})


def test_a_resource_without_a_name_gets_a_generated_one(world: World) -> None:
    first, _ = world.engine.check(ROLE, "nodes", {"assumeRolePolicy": "{}"})
    assert re.fullmatch(r"nodes-[0-9a-f]{7}", first["name"])
    again, _ = world.engine.check(ROLE, "other", {"assumeRolePolicy": "{}"}, old=first)
    assert again["name"] == first["name"]
    prefixed, _ = world.engine.check(ROLE, "nodes", {"assumeRolePolicy": "{}", "namePrefix": "vision-"})
    assert re.fullmatch(r"vision-[0-9a-f]{26}", prefixed["name"])


def test_waits_are_logged(world: World) -> None:
    made = world.engine.create(INSTANCE, "seen", CASES[INSTANCE].inputs(world))
    world.engine.delete(made)
    assert any(line.startswith("pending, waiting until running") for line in world.engine.heard.statuses)


def test_a_provider_of_another_region_uses_that_region(world: World) -> None:
    inputs = {"cidrBlock": "10.0.0.0/16"}
    here = world.engine.create(VPC, "regional", inputs)
    assert world.engine.diff(here, {**inputs, "region": "us-west-2"}).replaces == ["region"]
    there = world.engine.create(VPC, "regional", {**inputs, "region": "us-west-2"})
    try:
        assert there.outputs["arn"].startswith("arn:aws:ec2:us-west-2:123456789012:vpc/vpc-")
        assert world.engine.refresh(there) is not None
    finally:
        world.engine.delete(here)
        world.engine.delete(there)


def test_default_tags_of_the_provider_are_on_every_resource(world: World) -> None:
    """And a change of them is an update."""
    config = {"defaultTags": json.dumps({"tags": {"owner": "us", "team": "default"}})}
    with engine_side(LocalAws()) as engine:
        engine.configure(**config)
        made = engine.create(VPC, "tagged", {"cidrBlock": "10.0.0.0/16", "tags": {"team": "own"}})
        assert made.outputs["tagsAll"] == {"owner": "us", "team": "own"}
        assert made.outputs["tags"] == {"team": "own"}
    with engine_side(LocalAws()) as engine:
        engine.configure(defaultTags=json.dumps({"tags": {"owner": "them"}}))
        wanted = {"cidrBlock": "10.0.0.0/16", "tags": {"team": "own"}}
        assert "tagsAll.owner" in engine.diff(made, wanted).detailedDiff
        changed = engine.update(made, wanted)
        assert changed.outputs["tagsAll"] == {"owner": "them", "team": "own"}
        engine.delete(changed)


def test_nothing_but_a_local_cloud_is_called(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(words: str, **variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with engine_side(LocalAws()) as engine, pytest.raises(Failed, match=words):
            engine.configure()

    refused("not on this machine", AWS_ENDPOINT_URL="http://203.0.113.1:80")
    refused(
        "not on this machine", AWS_ENDPOINT_URL=world.cloud.endpoint, AWS_ENDPOINT_URL_S3="https://s3.amazonaws.com"
    )
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3")
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    refused("(?s)AWS_ENDPOINT_URL names no endpoint.*pulumi plugin install resource aws")


@pytest.mark.parametrize("token", FUNCTIONS)
def test_functions_return_the_resources_that_they_look_up(world: World, token: str) -> None:
    for args, expected in LOOKUPS[token](world):
        seen = watched(world)
        found = seen.engine.invoke(token, args)
        judge_function(token, seen.engine)  # type: ignore[arg-type]
        assert found["id"]
        assert {key: found.get(key) for key in expected} == expected
