# SPDX-License-Identifier: Apache-2.0
"""Every type of the local cloud's `oci` plugin, through the provider protocol, against the local cloud."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from localcloud import control
from localcloud.plugin.functions import FUNCTIONS
from localcloud.plugin.plugin import LocalOci
from localcloud.plugin.rows import ROWS
from provider.base.values import UNKNOWN, Properties, Secret
from tests.cloud_fixture import local_cloud
from tests.provider_client import EngineSide, Failed, Resource, engine_side


@dataclass(frozen=True)
class World:
    """A cloud, the plugin on it, and the resources other resources stand on."""

    cloud: control.Cloud
    engine: EngineSide
    folder: Path
    made: dict[str, Resource]

    def id(self, token: str) -> str:
        return self.resource(token).id

    def resource(self, token: str) -> Resource:
        if token not in self.made:
            case = CASES[token]
            self.made[token] = self.engine.create(token, "base", case.inputs(self))
        return self.made[token]


@dataclass(frozen=True)
class Case:
    """Inputs that make one, what to change in place, what of it must read back, and what forces a replacement."""

    inputs: Callable[[World], Properties]
    change: Mapping[str, Any]
    replace: Mapping[str, Any]
    import_id: Callable[[Resource], str] = lambda made: made.id


def _in_compartment(world: World, **more: Any) -> Properties:
    return {"compartmentId": world.cloud.compartment, "freeformTags": {"team": "vision"}, **more}


def _in_vcn(world: World, **more: Any) -> Properties:
    return _in_compartment(world, vcnId=world.id(VCN), **more)


VCN = "oci:Core/vcn:Vcn"
GROUP = "oci:Core/networkSecurityGroup:NetworkSecurityGroup"
BUCKET = "oci:ObjectStorage/bucket:Bucket"
LOG_GROUP = "oci:Logging/logGroup:LogGroup"
PROJECT = "oci:DataScience/project:Project"
_OTHER = "ocid1.other.oc1..aaaa"
_NAMED = {"displayName": "changed"}
_RULE = {"protocol": "6", "source": "10.0.0.0/24", "tcpOptions": {"min": 8786, "max": 8787}, "description": "dask"}
_PING = {"protocol": "1", "source": "10.0.0.0/16", "icmpOptions": {"type": 3, "code": 4}}
_OUT = {"protocol": "all", "destination": "0.0.0.0/0"}


def _service(world: World) -> Properties:
    services = world.engine.invoke("oci:Core/getServices:getServices", {})["services"]
    return {"serviceId": services[0]["id"]}


def _rule_inputs(world: World) -> Properties:
    ports = {"destinationPortRange": {"min": 29400, "max": 29400}}
    return {
        "networkSecurityGroupId": world.id(GROUP),
        "direction": "INGRESS",
        "protocol": "6",
        "source": "10.0.0.0/16",
        "tcpOptions": ports,
    }


def _job_inputs(world: World) -> Properties:
    artifact = world.folder / "train.py"
    artifact.write_text("print('hello')\n")
    return _in_compartment(
        world,
        projectId=world.id(PROJECT),
        displayName="job",
        jobConfigurationDetails={
            "jobType": "DEFAULT",
            "environmentVariables": {"A": "1"},
            "maximumRuntimeInMinutes": "30",
        },
        jobInfrastructureConfigurationDetails={
            "jobInfrastructureType": "ME_STANDALONE",
            "shapeName": "VM.Standard2.1",
            "blockStorageSizeInGbs": 50,
        },
        jobArtifact=str(artifact),
        artifactContentLength=str(artifact.stat().st_size),
        artifactContentDisposition="attachment; filename=train.py",
    )


CASES: Mapping[str, Case] = {
    VCN: Case(
        lambda w: _in_compartment(w, cidrBlocks=["10.0.0.0/16"], displayName="v", dnsLabel="train"),
        _NAMED,
        {"dnsLabel": "other"},
    ),
    "oci:Core/securityList:SecurityList": Case(
        lambda w: _in_vcn(w, ingressSecurityRules=[_RULE, _PING], egressSecurityRules=[_OUT]),
        {"ingressSecurityRules": [{**_RULE, "tcpOptions": {"min": 1, "max": 2}}]},
        {"vcnId": _OTHER},
    ),
    "oci:Core/internetGateway:InternetGateway": Case(
        lambda w: _in_vcn(w, displayName="igw"), {"enabled": False}, {"vcnId": _OTHER}
    ),
    "oci:Core/natGateway:NatGateway": Case(
        lambda w: _in_vcn(w, displayName="nat"), {"blockTraffic": True}, {"vcnId": _OTHER}
    ),
    "oci:Core/serviceGateway:ServiceGateway": Case(
        lambda w: _in_vcn(w, services=[_service(w)]), _NAMED, {"vcnId": _OTHER}
    ),
    "oci:Core/routeTable:RouteTable": Case(
        lambda w: _in_vcn(
            w,
            routeRules=[
                {
                    "networkEntityId": w.id("oci:Core/natGateway:NatGateway"),
                    "destination": "0.0.0.0/0",
                    "destinationType": "CIDR_BLOCK",
                }
            ],
        ),
        {"routeRules": []},
        {"vcnId": _OTHER},
    ),
    "oci:Core/subnet:Subnet": Case(
        lambda w: _in_vcn(
            w,
            cidrBlock="10.0.1.0/24",
            prohibitPublicIpOnVnic=True,
            securityListIds=[w.id("oci:Core/securityList:SecurityList")],
            routeTableId=w.id("oci:Core/routeTable:RouteTable"),
        ),
        _NAMED,
        {"prohibitPublicIpOnVnic": False},
    ),
    GROUP: Case(lambda w: _in_vcn(w, displayName="nodes"), _NAMED, {"vcnId": _OTHER}),
    "oci:Core/networkSecurityGroupSecurityRule:NetworkSecurityGroupSecurityRule": Case(
        _rule_inputs, {"description": "changed"}, {"networkSecurityGroupId": _OTHER}
    ),
    "oci:Identity/dynamicGroup:DynamicGroup": Case(
        lambda w: {
            "compartmentId": w.cloud.tenancy,
            "name": "runs",
            "description": "d",
            "matchingRule": "ALL {resource.type = 'datasciencejobrun'}",
        },
        {"description": "changed"},
        {"name": "others"},
    ),
    "oci:Identity/policy:Policy": Case(
        lambda w: {
            "compartmentId": w.cloud.compartment,
            "name": "users",
            "description": "d",
            "statements": [f"allow group scientists to read buckets in compartment id {w.cloud.compartment}"],
        },
        {"description": "changed"},
        {"name": "others"},
    ),
    BUCKET: Case(
        lambda w: _in_compartment(w, namespace=w.cloud.namespace, name="data", metadata={"a": "1"}),
        {"versioning": "Enabled"},
        {"name": "other"},
    ),
    "oci:ObjectStorage/storageObject:StorageObject": Case(
        lambda w: {
            "namespace": w.cloud.namespace,
            "bucket": w.resource(BUCKET).outputs["name"],
            "object": "some/code.py",
            "content": "print(1)",
            "contentType": "text/plain",
        },
        {},
        {"content": "print(2)"},
    ),
    "oci:Artifacts/containerRepository:ContainerRepository": Case(
        lambda w: _in_compartment(w, displayName="vision/dt", readme={"content": "hello", "format": "TEXT_PLAIN"}),
        {"isPublic": True},
        {"displayName": "vision/other"},
    ),
    LOG_GROUP: Case(lambda w: _in_compartment(w, displayName="logs"), {"description": "changed"}, {}),
    "oci:Logging/log:Log": Case(
        lambda w: {"logGroupId": w.id(LOG_GROUP), "displayName": "runs", "logType": "CUSTOM", "retentionDuration": 30},
        {"displayName": "changed"},
        {"logType": "SERVICE"},
        lambda made: f"logGroupId/{made.inputs['logGroupId']}/logId/{made.id}",
    ),
    PROJECT: Case(lambda w: _in_compartment(w, displayName="p"), {"description": "changed"}, {}),
    "oci:Vault/secret:Secret": Case(
        lambda w: _in_compartment(
            w,
            vaultId=_OTHER,
            keyId=_OTHER,
            secretName="token",
            secretContent={"contentType": "BASE64", "content": "Zmlyc3Q="},
        ),
        {"secretContent": {"contentType": "BASE64", "content": "c2Vjb25k"}},
        {"secretName": "other"},
    ),
    "oci:DataScience/job:Job": Case(
        _job_inputs,
        {"displayName": "changed"},
        {"jobConfigurationDetails": {"jobType": "DEFAULT", "environmentVariables": {"A": "2"}}},
    ),
}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[control.Cloud]:
    with local_cloud(tmp_path_factory.mktemp("cloud") / "cloud") as started:
        yield started


@pytest.fixture
def world(cloud: control.Cloud, tmp_path: Path) -> Iterator[World]:
    with patch.dict(os.environ, cloud.env), engine_side(LocalOci()) as engine:
        engine.configure()
        world = World(cloud, engine, tmp_path, {})
        try:
            yield world
        finally:
            for resource in reversed(world.made.values()):
                engine.delete(resource)


def test_every_row_has_a_case() -> None:
    assert set(CASES) == set(ROWS)


@pytest.mark.parametrize("token", CASES)
def test_a_life(world: World, token: str) -> None:
    """Made, unchanged, read, imported, changed, deleted: each as the engine asks for it."""
    case, engine = CASES[token], world.engine
    inputs = case.inputs(world)
    made = engine.create(token, "it", inputs)
    try:
        assert made.id
        assert not engine.diff(made, inputs).detailedDiff

        seen = engine.refresh(made)
        assert seen is not None
        assert seen.inputs == made.inputs
        assert not engine.diff(seen, inputs).detailedDiff

        imported = engine.import_(token, "it", case.import_id(made))
        assert imported is not None
        assert imported.id == made.id

        made = _changed(engine, made, {**inputs, **case.change})
        replacing = engine.diff(made, {**inputs, **case.change, **case.replace})
        assert sorted({path.split(".")[0] for path in replacing.replaces}) == sorted(case.replace)
    finally:
        engine.delete(made)
    assert engine.refresh(made) is None
    engine.delete(made)  # what is gone already is deleted


def _changed(engine: EngineSide, made: Resource, inputs: Properties) -> Resource:
    diff = engine.diff(made, inputs)
    assert not diff.replaces
    changed = engine.update(made, inputs)
    seen = engine.refresh(changed)
    assert seen is not None
    assert seen.inputs == changed.inputs
    return changed


def test_secrets_stay_secret(world: World) -> None:
    job = _job_inputs(world)
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


def test_what_is_not_known_before_the_update_is_unknown(world: World) -> None:
    outputs = world.engine.preview("oci:Core/subnet:Subnet", "it", {"compartmentId": UNKNOWN, "vcnId": UNKNOWN})
    assert outputs["vcnId"] is UNKNOWN
    assert outputs["virtualRouterIp"] is UNKNOWN


def test_a_name_is_made_where_none_is_given(world: World) -> None:
    inputs = {"compartmentId": world.cloud.compartment, "namespace": world.cloud.namespace}
    first, _ = world.engine.check(BUCKET, "data", inputs)
    assert first["name"].startswith("data-")
    again, _ = world.engine.check(BUCKET, "other", inputs, old=first)
    assert again["name"] == first["name"]


def test_an_unknown_input_is_refused(world: World) -> None:
    _, failures = world.engine.check(PROJECT, "it", {"compartmentId": "c", "nonsense": 1})
    assert failures == [f"nonsense: {PROJECT} has no input `nonsense`."]


def test_a_create_that_was_cut_off_makes_nothing_twice(world: World) -> None:
    """The plugin was killed after the cloud had made it, before the engine heard of it."""
    inputs = _in_compartment(world, displayName="p")
    first = world.engine.create(PROJECT, "it", inputs)
    with engine_side(LocalOci()) as engine:
        engine.configure()
        again = engine.create(PROJECT, "it", inputs)
    world.engine.delete(first)
    assert again.id == first.id
    anew = world.engine.create(PROJECT, "it", inputs)
    world.engine.delete(anew)
    assert anew.id != first.id


def test_a_replacement_by_the_same_is_another(world: World) -> None:
    inputs = _in_compartment(world, displayName="p")
    first = world.engine.create(PROJECT, "it", inputs)
    second = world.engine.create(PROJECT, "it", inputs, old=first.inputs)
    world.engine.delete(first)
    world.engine.delete(second)
    assert second.id != first.id


def test_a_name_that_a_secret_on_its_way_out_keeps_is_said_in_words(world: World) -> None:
    content = {"contentType": "BASE64", "content": "Zmlyc3Q="}
    inputs = _in_compartment(
        world, vaultId="ocid1.vault.oc1..v", keyId=_OTHER, secretName="gone", secretContent=content
    )
    first = world.engine.create("oci:Vault/secret:Secret", "it", inputs)
    world.engine.delete(first)
    for again in (inputs, {**inputs, "description": "another"}):
        with pytest.raises(Failed, match=r"(?s)awaits its deletion.*cancel-secret-deletion"):
            world.engine.create("oci:Vault/secret:Secret", "it", again)


def test_drift_is_seen(world: World) -> None:
    """Changed behind Pulumi's back: the next preview shows it."""
    inputs = CASES["oci:Core/securityList:SecurityList"].inputs(world)
    made = world.engine.create("oci:Core/securityList:SecurityList", "it", inputs)
    try:
        world.engine.update(made, {**inputs, "ingressSecurityRules": [_RULE]})
        seen = world.engine.refresh(made)
        assert seen is not None
        assert "ingressSecurityRules" in world.engine.diff(seen, inputs).detailedDiff
    finally:
        world.engine.delete(made)


@pytest.mark.parametrize("token", FUNCTIONS)
def test_functions(world: World, token: str) -> None:
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
    }
    in_tenancy = token.startswith("oci:Identity/getGroups")
    tenancy = {"compartmentId": world.cloud.tenancy} if in_tenancy else {}
    found = world.engine.invoke(token, {**arguments, **tenancy, **needs.get(token, dict)()})
    assert found["id"]
    plural = FUNCTIONS[token].plural
    assert not plural or found[plural]


def test_functions_filter(world: World) -> None:
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
