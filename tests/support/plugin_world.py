# SPDX-License-Identifier: Apache-2.0
"""A test case for every type of the local cloud's `oci` plugin: inputs, changes, and the resources that it needs."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from components.platform.values import Properties
from localcloud import control
from localcloud.oci.plugin.plugin import LocalOci
from provider.base.resource import Plugin
from tests.support.provider_client import EngineSide, Resource, engine_side
from tests.support.run_world import small_machine


@dataclass(frozen=True)
class World:
    """A cloud, its plugin, and the resources that other resources need."""

    cloud: control.Cloud
    engine: EngineSide
    folder: Path
    made: dict[str, Resource]
    cases: Mapping[str, "Case"]
    # Deletes what a test makes in addition, before these resources are deleted.
    closing: ExitStack = field(default_factory=ExitStack)

    def id(self, token: str) -> str:
        return self.resource(token).id

    def resource(self, token: str) -> Resource:
        if token not in self.made:
            self.made[token] = self.engine.create(token, "base", self.cases[token].inputs(self))
        return self.made[token]

    def another(self, token: str) -> Resource:
        """Makes a second resource of the same kind."""
        key = f"{token} again"
        if key not in self.made:
            self.made[key] = self.engine.create(token, "another", self.cases[token].inputs(self))
        return self.made[key]


@contextmanager
def plugin_world(cloud: control.Cloud, folder: Path) -> Iterator[World]:
    """The plugin `oci` of a cloud. The resources that tests need are deleted in the end."""
    with world_of(LocalOci(), CASES, cloud, folder) as world:
        yield world


@contextmanager
def world_of(plugin: Plugin, cases: Mapping[str, "Case"], cloud: control.Cloud, folder: Path) -> Iterator[World]:
    with patch.dict(os.environ, cloud.env), engine_side(plugin) as engine:
        engine.configure()
        world = World(cloud, engine, folder, {}, cases)
        try:
            with world.closing:
                yield world
        finally:
            for resource in reversed(world.made.values()):
                engine.delete(resource)


@dataclass(frozen=True)
class Case:
    """The inputs of a resource, the inputs to change in place, those that must be read back, and those that replace
    it."""

    inputs: Callable[[World], Properties]
    change: Mapping[str, Any]
    replace: Mapping[str, Any]
    import_id: Callable[[Resource], str] = lambda made: made.id
    # Whether something stays after the deletion: some settings can be suspended, but not removed.
    stays: bool = False


def live(world: World, token: str) -> None:
    """Tests one resource by the engine's calls: create, diff without a change, read, import, update, delete."""
    case, engine = world.cases[token], world.engine
    inputs = case.inputs(world)
    made = engine.create(token, "it", inputs)
    try:
        assert made.id
        assert not engine.diff(made, inputs).detailedDiff

        seen = engine.refresh(made)
        assert seen is not None
        assert seen.inputs == made.inputs, (seen.inputs, made.inputs)
        assert not engine.diff(seen, inputs).detailedDiff

        imported = engine.import_(token, "it", case.import_id(made))
        assert imported is not None
        assert imported.id == made.id

        made = _changed(engine, made, {**inputs, **case.change})
        replacing = engine.diff(made, {**inputs, **case.change, **case.replace})
        assert sorted({path.split(".")[0] for path in replacing.replaces}) == sorted(case.replace)
    finally:
        engine.delete(made)
    assert (engine.refresh(made) is None) != case.stays
    engine.delete(made)  # deleting a missing resource succeeds


def _changed(engine: EngineSide, made: Resource, inputs: Properties) -> Resource:
    diff = engine.diff(made, inputs)
    assert not diff.replaces
    changed = engine.update(made, inputs)
    seen = engine.refresh(changed)
    assert seen is not None
    assert seen.inputs == changed.inputs, (seen.inputs, changed.inputs)
    return changed


def in_compartment(world: World, **more: Any) -> Properties:
    return {"compartmentId": world.cloud.compartment, "freeformTags": {"team": "vision"}, **more}


def _in_vcn(world: World, **more: Any) -> Properties:
    return in_compartment(world, vcnId=world.id(VCN), **more)


VCN = "oci:Core/vcn:Vcn"
GROUP = "oci:Core/networkSecurityGroup:NetworkSecurityGroup"
BUCKET = "oci:ObjectStorage/bucket:Bucket"
LOG_GROUP = "oci:Logging/logGroup:LogGroup"
PROJECT = "oci:DataScience/project:Project"
COMPUTE_TARGET = "oci:DataScience/computeTarget:ComputeTarget"
OTHER = "ocid1.other.oc1..aaaa"
_NAMED = {"displayName": "changed"}
RULE = {"protocol": "6", "source": "10.0.0.0/24", "tcpOptions": {"min": 8786, "max": 8787}, "description": "dask"}
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


def job_inputs(world: World) -> Properties:
    return in_compartment(
        world,
        projectId=world.id(PROJECT),
        displayName="job",
        jobConfigurationDetails={
            "jobType": "DEFAULT",
            "environmentVariables": {"A": "1"},
            "maximumRuntimeInMinutes": "30",
        },
        **small_machine(world.folder, "print('hello')\n"),
    )


def compute_cluster(instances: int) -> Properties:
    return {
        "computeType": "MANAGED_COMPUTE_CLUSTER",
        "instanceConfiguration": {
            "instanceShape": "VM.Standard.E4.Flex",
            "bootVolumeSizeInGbs": 100,
            "instanceShapeDetails": {"ocpus": 4, "memoryInGbs": 64},
        },
        "scalingPolicy": {"policyType": "FIXED_SIZE", "instanceCount": instances},
    }


CASES: Mapping[str, Case] = {
    VCN: Case(
        lambda w: in_compartment(w, cidrBlocks=["10.0.0.0/16"], displayName="v", dnsLabel="train"),
        _NAMED,
        {"dnsLabel": "other"},
    ),
    "oci:Core/securityList:SecurityList": Case(
        lambda w: _in_vcn(w, ingressSecurityRules=[RULE, _PING], egressSecurityRules=[_OUT]),
        {"ingressSecurityRules": [{**RULE, "tcpOptions": {"min": 1, "max": 2}}]},
        {"vcnId": OTHER},
    ),
    "oci:Core/internetGateway:InternetGateway": Case(
        lambda w: _in_vcn(w, displayName="igw"), {"enabled": False}, {"vcnId": OTHER}
    ),
    "oci:Core/natGateway:NatGateway": Case(
        lambda w: _in_vcn(w, displayName="nat"), {"blockTraffic": True}, {"vcnId": OTHER}
    ),
    "oci:Core/serviceGateway:ServiceGateway": Case(
        lambda w: _in_vcn(w, services=[_service(w)]), _NAMED, {"vcnId": OTHER}
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
        {"vcnId": OTHER},
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
    GROUP: Case(lambda w: _in_vcn(w, displayName="nodes"), _NAMED, {"vcnId": OTHER}),
    "oci:Core/networkSecurityGroupSecurityRule:NetworkSecurityGroupSecurityRule": Case(
        _rule_inputs, {"description": "changed"}, {"networkSecurityGroupId": OTHER}
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
        lambda w: in_compartment(w, namespace=w.cloud.namespace, name="data", metadata={"a": "1"}),
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
        lambda w: in_compartment(w, displayName="vision/dt", readme={"content": "hello", "format": "TEXT_PLAIN"}),
        {"isPublic": True},
        {"displayName": "vision/other"},
    ),
    LOG_GROUP: Case(lambda w: in_compartment(w, displayName="logs"), {"description": "changed"}, {}),
    "oci:Logging/log:Log": Case(
        lambda w: {"logGroupId": w.id(LOG_GROUP), "displayName": "runs", "logType": "CUSTOM", "retentionDuration": 30},
        {"displayName": "changed"},
        {"logType": "SERVICE"},
        lambda made: f"logGroupId/{made.inputs['logGroupId']}/logId/{made.id}",
    ),
    PROJECT: Case(lambda w: in_compartment(w, displayName="p"), {"description": "changed"}, {}),
    COMPUTE_TARGET: Case(
        lambda w: in_compartment(w, displayName="pool", computeConfigurationDetails=compute_cluster(1)),
        {"computeConfigurationDetails": compute_cluster(2)},
        {},
    ),
    "oci:Vault/secret:Secret": Case(
        lambda w: in_compartment(
            w,
            vaultId=OTHER,
            keyId=OTHER,
            secretName="token",
            secretContent={"contentType": "BASE64", "content": "Zmlyc3Q="},
        ),
        {"secretContent": {"contentType": "BASE64", "content": "c2Vjb25k"}},
        {"secretName": "other"},
    ),
    "oci:DataScience/job:Job": Case(
        job_inputs,
        {"displayName": "changed"},
        {"jobConfigurationDetails": {"jobType": "DEFAULT", "environmentVariables": {"A": "2"}}},
    ),
}
