# SPDX-License-Identifier: Apache-2.0
"""Every type of the local cloud's `oci` plugin, through the provider protocol, against the local cloud."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from components.oci.client.session import Session
from components.oci.types import SERVED_TYPES
from components.oci.types.functions import FUNCTIONS
from components.platform.values import UNKNOWN, Properties, Secret
from localcloud import control
from localcloud.oci.plugin.plugin import LocalOci
from tests.support.call_record import listening
from tests.support.cloud_fixture import local_cloud
from tests.support.plugin_world import (
    BUCKET,
    CASES,
    COMPUTE_TARGET,
    LOG_GROUP,
    OTHER,
    PROJECT,
    RULE,
    VCN,
    World,
    in_compartment,
    job_inputs,
    live,
    plugin_world,
)
from tests.support.provider_client import Failed, Resource, engine_side


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[control.Cloud]:
    with local_cloud(tmp_path_factory.mktemp("cloud") / "cloud") as started:
        yield started


@pytest.fixture
def world(cloud: control.Cloud, tmp_path: Path) -> Iterator[World]:
    with plugin_world(cloud, tmp_path) as made:
        yield made


def test_every_row_has_a_case() -> None:
    assert set(CASES) == set(SERVED_TYPES)


@pytest.mark.parametrize("token", CASES)
def test_a_resource_is_created_read_updated_and_deleted_with_the_providers_calls_only(world: World, token: str) -> None:
    live(world, token)


def test_cidr_blocks_of_a_vcn_change_one_at_a_time(world: World) -> None:
    """Oracle's provider can change one element at a time: add one at the end, replace one, remove one."""
    world.id("oci:Core/subnet:Subnet")
    vcn, engine = world.resource(VCN), world.engine

    def changed(*blocks: str) -> Resource:
        return engine.update(vcn, {**vcn.inputs, "cidrBlocks": list(blocks)})

    for blocks in (
        ("10.0.0.0/16", "10.1.0.0/16"),
        ("10.0.0.0/16", "10.2.0.0/16"),
        ("10.0.0.0/20", "10.2.0.0/16"),
        ("10.0.0.0/20",),
    ):
        vcn = changed(*blocks)
        assert vcn.outputs["cidrBlocks"] == list(blocks)
        assert vcn.outputs["cidrBlock"] == blocks[0]
        # An update that was interrupted after the cloud had made it has nothing left to do.
        assert changed(*blocks).outputs["cidrBlocks"] == list(blocks)
    too_much = r"(?s)cannot change `cidrBlocks` from 10.0.0.0/20 to .*run `pulumi up`, then change the next"
    with pytest.raises(Failed, match=too_much):
        changed("10.3.0.0/16", "10.0.0.0/20")
    with pytest.raises(Failed, match=too_much):
        changed("10.0.0.0/20", "10.3.0.0/16", "10.4.0.0/16")
    left_out = r"(?s)subnets lie outside of 10.9.0.0/16.* 10.0.1.0/24 \(ocid1.subnet.*trainyard up .* --local --replace"
    with pytest.raises(Failed, match=left_out):
        changed("10.9.0.0/16")
    with pytest.raises(Failed, match=left_out):
        engine.diff(vcn, {**vcn.inputs, "cidrBlocks": ["10.9.0.0/16"]})


def test_secret_inputs_of_a_resource_are_secret_outputs(world: World) -> None:
    job = job_inputs(world)
    job["jobConfigurationDetails"]["environmentVariables"] = {"TOKEN": Secret("hush-hush")}
    made = world.engine.create("oci:DataScience/job:Job", "it", job)
    try:
        sealed = made.outputs["jobConfigurationDetails"]["environmentVariables"]["TOKEN"]
        assert sealed == Secret("hush-hush")
        seen = world.engine.refresh(made)
        assert seen is not None
        assert seen.inputs["jobConfigurationDetails"]["environmentVariables"]["TOKEN"] == Secret("hush-hush")
        assert "hush-hush" not in world.engine.heard.everything
    finally:
        world.engine.delete(made)


def test_outputs_that_an_update_may_change_are_unknown_in_the_preview(world: World) -> None:
    outputs = world.engine.preview("oci:Core/subnet:Subnet", "it", {"compartmentId": UNKNOWN, "vcnId": UNKNOWN})
    assert outputs["vcnId"] is UNKNOWN
    assert outputs["virtualRouterIp"] is UNKNOWN


def test_a_resource_without_a_name_gets_a_generated_one(world: World) -> None:
    inputs = {"compartmentId": world.cloud.compartment, "namespace": world.cloud.namespace}
    first, _ = world.engine.check(BUCKET, "data", inputs)
    assert first["name"].startswith("data-")
    again, _ = world.engine.check(BUCKET, "other", inputs, old=first)
    assert again["name"] == first["name"]


def test_an_unknown_input_is_refused(world: World) -> None:
    _, failures = world.engine.check(PROJECT, "it", {"compartmentId": "c", "nonsense": 1})
    assert failures == [f"nonsense: {PROJECT} has no input `nonsense`."]


def test_a_create_repeated_after_a_kill_makes_nothing_twice(world: World) -> None:
    """The plugin was killed after the cloud had made it, before the engine heard of it."""
    inputs = in_compartment(world, displayName="p")
    first = world.engine.create(PROJECT, "it", inputs)
    with engine_side(LocalOci()) as engine:
        engine.configure()
        again = engine.create(PROJECT, "it", inputs)
    world.engine.delete(first)
    assert again.id == first.id
    anew = world.engine.create(PROJECT, "it", inputs)
    world.engine.delete(anew)
    assert anew.id != first.id


def test_a_replacement_with_equal_inputs_is_a_new_resource(world: World) -> None:
    inputs = in_compartment(world, displayName="p")
    first = world.engine.create(PROJECT, "it", inputs)
    second = world.engine.create(PROJECT, "it", inputs, old=first.inputs)
    world.engine.delete(first)
    world.engine.delete(second)
    assert second.id != first.id


def test_the_name_of_a_secret_that_is_being_deleted_gives_a_clear_error(world: World) -> None:
    content = {"contentType": "BASE64", "content": "Zmlyc3Q="}
    inputs = in_compartment(world, vaultId="ocid1.vault.oc1..v", keyId=OTHER, secretName="gone", secretContent=content)
    first = world.engine.create("oci:Vault/secret:Secret", "it", inputs)
    world.engine.delete(first)
    for again in (inputs, {**inputs, "description": "another"}):
        with pytest.raises(Failed, match=r"(?s)is scheduled for deletion.*cancel-secret-deletion"):
            world.engine.create("oci:Vault/secret:Secret", "it", again)


TAKEN: Mapping[str, str] = {
    BUCKET: r"trainyard:bucket: \{ existing: data \}`",
    "oci:Artifacts/containerRepository:ContainerRepository": r"trainyard:registry: \{ existing: vision/dt \}",
    LOG_GROUP: r"trainyard:logs: \{ existing: \{ group: logs \} \}",
    "oci:Logging/log:Log": r"trainyard:logs: \{ existing: \{ group: GROUP, log: runs \} \}",
    "oci:Identity/dynamicGroup:DynamicGroup": r"trainyard:access: \{ existing: true, runs: runs \}",
    "oci:Identity/policy:Policy": r"trainyard:access: \{ existing: true \}",
}


@pytest.mark.parametrize("token", TAKEN)
def test_a_name_that_is_taken_gives_an_error_with_remedies(world: World, token: str) -> None:
    """Resources of another stack, or made by hand, are never adopted."""
    taken = world.resource(token)
    if token == BUCKET:  # It has the same tags, as a destroyed stack leaves it, and is not empty.
        storage = Session.of({}, world.cloud.env).client("object_storage")
        storage.put_object(world.cloud.namespace, "data", "weights", b"1")
        world.closing.callback(storage.delete_object, world.cloud.namespace, "data", "weights")
    with pytest.raises(Failed, match=f"(?s)409 .*AlreadyExists.*{TAKEN[token]}") as refused:
        world.engine.create(token, "it", taken.inputs)
    # The import id in the message works for the other resource.
    _, _, words = str(refused.value).partition(f"pulumi import --stack test {token} it ")
    imported = world.engine.import_(token, "it", words.partition("`")[0])
    assert imported is not None
    assert imported.id == taken.id


def test_a_log_can_be_disabled_by_an_update_but_not_created_disabled(world: World) -> None:
    """Oracle's provider waits until a new resource is ACTIVE, and does not wait after an update."""
    token = "oci:Logging/log:Log"
    inputs = CASES[token].inputs(world)
    with pytest.raises(Failed, match="is INACTIVE: after its creation it must be ACTIVE") as refused:
        world.engine.create(token, "it", {**inputs, "isEnabled": False})
    assert refused.value.kept is not None
    world.engine.delete(refused.value.kept)
    made = world.engine.create(token, "it", inputs)
    made = world.engine.update(made, {**inputs, "isEnabled": False})
    world.engine.delete(made)
    assert made.outputs["state"] == "INACTIVE"


def test_a_bucket_with_objects_is_not_deleted(world: World) -> None:
    bucket, client = world.resource(BUCKET), Session.of({}, world.cloud.env).client("object_storage")
    client.put_object(world.cloud.namespace, "data", "weights", b"1")
    world.closing.callback(client.delete_object, world.cloud.namespace, "data", "weights")
    with pytest.raises(Failed, match=r"(?s)409 BucketNotEmpty.*Empty the bucket first"):
        world.engine.delete(bucket)
    assert client.get_object(world.cloud.namespace, "data", "weights").data.content == b"1"


def test_a_refresh_detects_drift(world: World) -> None:
    """Changed without Pulumi: the next preview shows it."""
    inputs = CASES["oci:Core/securityList:SecurityList"].inputs(world)
    made = world.engine.create("oci:Core/securityList:SecurityList", "it", inputs)
    try:
        world.engine.update(made, {**inputs, "ingressSecurityRules": [RULE]})
        seen = world.engine.refresh(made)
        assert seen is not None
        changed = world.engine.diff(seen, inputs).detailedDiff
        assert [path for path in changed if path.startswith("ingressSecurityRules[")]
    finally:
        world.engine.delete(made)


def _called(world: World, token: str) -> Properties:
    """The name by which the resource of this type is found."""
    return {"displayName": world.resource(token).outputs["displayName"]}


@pytest.mark.parametrize("token", FUNCTIONS)
def test_each_function_of_the_plugin_answers(world: World, token: str) -> None:
    arguments: Mapping[str, Any] = {
        "namespace": world.cloud.namespace,
        "compartmentId": world.cloud.compartment,
        "tenancyId": world.cloud.tenancy,
        "id": world.cloud.compartment,
    }
    needs: Mapping[str, Callable[[], Properties]] = {
        "oci:ObjectStorage/getBucket:getBucket": lambda: {"name": world.resource(BUCKET).outputs["name"]},
        "oci:Core/getVcn:getVcn": lambda: {"vcnId": world.id(VCN)},
        "oci:Core/getSubnet:getSubnet": lambda: {"subnetId": world.id("oci:Core/subnet:Subnet")},
        "oci:Artifacts/getContainerRepository:getContainerRepository": lambda: {
            "repositoryId": world.id("oci:Artifacts/containerRepository:ContainerRepository")
        },
        "oci:DataScience/getProject:getProject": lambda: {"projectId": world.id(PROJECT)},
        "oci:Logging/getLogGroup:getLogGroup": lambda: {"logGroupId": world.id(LOG_GROUP)},
        # A resource of each of these types has to exist.
        "oci:Core/getVcns:getVcns": lambda: _called(world, VCN),
        "oci:Core/getSubnets:getSubnets": lambda: _called(world, "oci:Core/subnet:Subnet"),
        "oci:Core/getRouteTables:getRouteTables": lambda: _called(world, "oci:Core/routeTable:RouteTable"),
        "oci:DataScience/getProjects:getProjects": lambda: _called(world, PROJECT),
        "oci:DataScience/getComputeTarget:getComputeTarget": lambda: {"computeTargetId": world.id(COMPUTE_TARGET)},
        "oci:DataScience/getComputeTargets:getComputeTargets": lambda: {
            **_called(world, COMPUTE_TARGET),
            "id": world.id(COMPUTE_TARGET),
        },
        "oci:Logging/getLogGroups:getLogGroups": lambda: _called(world, LOG_GROUP),
        "oci:Logging/getLogs:getLogs": lambda: {
            **_called(world, "oci:Logging/log:Log"),
            "logGroupId": world.id(LOG_GROUP),
        },
        "oci:Logging/getLog:getLog": lambda: {
            "logGroupId": world.id(LOG_GROUP),
            "logId": world.id("oci:Logging/log:Log"),
        },
    }
    in_tenancy = token.startswith("oci:Identity/getGroups")
    tenancy = {"compartmentId": world.cloud.tenancy} if in_tenancy else {}
    given = {**arguments, **tenancy, **needs.get(token, dict)()}
    with listening(world.cloud) as called:
        found = world.engine.invoke(token, given)
    assert called.names == set(FUNCTIONS[token].calls)
    assert found["id"]
    plural = FUNCTIONS[token].plural
    assert not plural or found[plural]


def test_functions_filter_their_results(world: World) -> None:
    token = "oci:Core/getServices:getServices"
    every = world.engine.invoke(token, {})["services"]
    wanted = [{"name": "name", "values": ["All .* Services In .*"], "regex": True}]
    assert 0 < len(world.engine.invoke(token, {"filters": wanted})["services"]) < len(every)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://192.0.2.1:80", "not on this machine"),
        ("https://iaas.us-ashburn-1.oraclecloud.com", "not on this machine"),
        ("http://127.0.0.1:1", "does not answer"),
    ],
)
def test_other_endpoints_are_refused(world: World, url: str, says: str) -> None:
    overrides = world.cloud.env["CLIENT_HOST_OVERRIDES"].replace(world.cloud.endpoint, url, 1)
    with (
        patch.dict(os.environ, {"CLIENT_HOST_OVERRIDES": overrides}),
        engine_side(LocalOci()) as engine,
        pytest.raises(Failed, match=says),
    ):
        engine.configure()


def test_without_endpoints_nothing_is_called(world: World) -> None:
    with (
        patch.dict(os.environ, {"CLIENT_HOST_OVERRIDES": ""}),
        engine_side(LocalOci()) as engine,
        pytest.raises(Failed, match="for the local cloud only"),
    ):
        engine.configure()
