# SPDX-License-Identifier: Apache-2.0
"""Another value for every input of the `oci` plugin's types, by its type, or by a row of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, get_args, get_origin

from pulumi import _types

from components.oci.client.session import Session
from components.platform.values import Properties
from tests.support.plugin_world import BUCKET, COMPUTE_TARGET, RULE, VCN, World, compute_cluster, in_compartment

Key = tuple[str, str]
SUBNET = "oci:Core/subnet:Subnet"
ROUTES = "oci:Core/routeTable:RouteTable"
RULES = "oci:Core/securityList:SecurityList"
NSG_RULE = "oci:Core/networkSecurityGroupSecurityRule:NetworkSecurityGroupSecurityRule"
REPOSITORY = "oci:Artifacts/containerRepository:ContainerRepository"
OBJECT = "oci:ObjectStorage/storageObject:StorageObject"
POLICY = "oci:Identity/policy:Policy"
SECRET = "oci:Vault/secret:Secret"
JOB = "oci:DataScience/job:Job"
_PORTS = {"min": 7000, "max": 7001}
_SIDES = {"sourcePortRange": _PORTS, "destinationPortRange": _PORTS}
_OTHER_RULE = {**RULE, "tcpOptions": {**_PORTS, "sourcePortRange": _PORTS}, "stateless": True, "description": "other"}
_MOUNT = {"storageType": "OBJECT_STORAGE", "destinationDirectoryName": "data", "bucket": "data", "namespace": "n"}


def official(token: str, suffix: str = "") -> Any:
    """The class of `pulumi_oci` for a type, or (`Args`) for its inputs."""
    _, path, name = token.split(":")
    return getattr(import_module(f"pulumi_oci.{path.split('/')[0].lower()}"), f"{name}{suffix}")


def input_types(arguments: Any) -> Mapping[str, Any]:
    """The type of every input, by its Pulumi name."""
    types: Mapping[str, Any] = _types.input_type_types(arguments)
    return types


def another(kind: Any, now: Any) -> Any:
    """Another value of this type. For an object, all of its parts change."""
    if get_origin(kind) is Mapping:
        return {**(now or {}), "changed": "yes"}
    if get_origin(kind) is Sequence:
        return [another(get_args(get_args(kind)[0])[0], now[0] if now else None)]
    if kind is bool:
        return not now
    if kind in (int, float):
        return kind((now or 1) + 1)
    if kind is str:
        return f"{now or 'was'}-changed"
    return {name: another(inner, (now or {}).get(name)) for name, inner in input_types(kind).items()}


def changes(world: World, token: str, name: str, now: Properties) -> Properties:
    """The inputs that have to change together with this one. Most change alone."""
    row = VALUES.get((token, name), VALUES.get(("", name)))
    if row is None:
        return {name: another(input_types(official(token, "Args"))[name], now.get(name))}
    value = row(world) if callable(row) else row
    return dict(value) if isinstance(value, Together) else {name: value}


class Together(dict[str, Any]):
    """Inputs that can only change together."""


def _compartment(world: World) -> str:
    """A second compartment."""
    identity, models = Session.of({}, world.cloud.env).client("identity"), import_module("oci.identity.models")
    there = [one.id for one in identity.list_compartments(world.cloud.tenancy, name="other").data]
    details = models.CreateCompartmentDetails(compartment_id=world.cloud.tenancy, name="other", description="another")
    return str(there[0] if there else identity.create_compartment(details).data.id)


def _defined_tags(world: World) -> Together:
    """A value of a tag, which is defined first."""
    identity, models = Session.of({}, world.cloud.env).client("identity"), import_module("oci.identity.models")
    if "Operations" not in [space.name for space in identity.list_tag_namespaces(world.cloud.tenancy).data]:
        details = {"compartment_id": world.cloud.tenancy, "name": "Operations", "description": "costs"}
        space = identity.create_tag_namespace(models.CreateTagNamespaceDetails(**details)).data
        identity.create_tag(space.id, models.CreateTagDetails(name="CostCenter", description="costs"))
    return Together(definedTags={"Operations.CostCenter": "43"})


def _dhcp(world: World) -> str:
    client, core = Session.of({}, world.cloud.env).client("core"), import_module("oci.core.models")
    details = core.CreateDhcpDetails(
        compartment_id=world.cloud.compartment,
        vcn_id=world.id(VCN),
        options=[core.DhcpDnsOption(type="DomainNameServer", server_type="VcnLocalPlusInternet")],
    )
    made = str(client.create_dhcp_options(details).data.id)
    world.closing.callback(client.delete_dhcp_options, made)
    return made


def _log_group(world: World) -> str:
    """A log group that stays: a log that moved into it is still there when the world ends."""
    inputs = in_compartment(world, displayName="other logs")
    return world.engine.create("oci:Logging/logGroup:LogGroup", "other-logs", inputs).id


def _services(world: World) -> list[Any]:
    services = world.engine.invoke("oci:Core/getServices:getServices", {})["services"]
    return [{"serviceId": services[-1]["id"]}]


def _second(token: str) -> Callable[[World], str]:
    return lambda world: world.another(token).id


def _options(name: str, protocol: str, options: Properties) -> Together:
    others = dict.fromkeys(("tcpOptions", "udpOptions", "icmpOptions"))
    return Together({**others, "protocol": protocol, name: options})


# By type and input, or by input alone: values that need a certain form or the name of an existing resource.
VALUES: Mapping[Key, Any] = {
    (COMPUTE_TARGET, "computeConfigurationDetails"): compute_cluster(3),
    ("", "compartmentId"): _compartment,
    ("", "definedTags"): _defined_tags,
    ("", "logGroupId"): _log_group,
    ("", "routeTableId"): _second(ROUTES),
    ("", "securityAttributes"): {"Oracle-ZPR.MaxEgressCount": "42"},
    (VCN, "cidrBlocks"): ["10.0.0.0/16", "10.1.0.0/16"],
    (SUBNET, "cidrBlock"): "10.0.1.0/25",
    (SUBNET, "dhcpOptionsId"): _dhcp,
    (SUBNET, "securityListIds"): lambda world: [world.id(RULES), world.another(RULES).id],
    (RULES, "ingressSecurityRules"): [_OTHER_RULE],
    (RULES, "egressSecurityRules"): [{"protocol": "17", "destination": "10.0.0.0/24", "udpOptions": _PORTS}],
    (ROUTES, "routeRules"): [],
    ("oci:Core/serviceGateway:ServiceGateway", "services"): _services,
    (NSG_RULE, "direction"): Together(direction="EGRESS", destination="10.0.0.0/24", source=None),
    (NSG_RULE, "source"): Together(direction="INGRESS", source="10.0.9.0/24", destination=None),
    (NSG_RULE, "sourceType"): Together(
        direction="INGRESS", sourceType="SERVICE_CIDR_BLOCK", source="oci-iad-objectstorage", destination=None
    ),
    (NSG_RULE, "destination"): Together(direction="EGRESS", destination="10.0.8.0/24", source=None, sourceType=None),
    (NSG_RULE, "destinationType"): Together(
        direction="EGRESS", destinationType="SERVICE_CIDR_BLOCK", destination="oci-iad-objectstorage", source=None
    ),
    (NSG_RULE, "protocol"): Together(protocol="all", tcpOptions=None, udpOptions=None, icmpOptions=None),
    (NSG_RULE, "tcpOptions"): _options("tcpOptions", "6", _SIDES),
    (NSG_RULE, "udpOptions"): _options("udpOptions", "17", _SIDES),
    (NSG_RULE, "icmpOptions"): _options("icmpOptions", "1", {"type": 3, "code": 4}),
    ("oci:Identity/dynamicGroup:DynamicGroup", "matchingRule"): "ALL {resource.type = 'datasciencejob'}",
    (POLICY, "statements"): lambda world: [
        f"allow group scientists to {verb} buckets in compartment id {world.cloud.compartment}"
        for verb in ("use", "read")
    ],
    (POLICY, "versionDate"): "2026-01-01T00:00:00Z",
    (BUCKET, "accessType"): "ObjectRead",
    (BUCKET, "autoTiering"): "InfrequentAccess",
    (BUCKET, "bucketScope"): "NAMESPACE",
    (BUCKET, "versioning"): "Enabled",
    (REPOSITORY, "readme"): {"content": "other", "format": "TEXT_MARKDOWN"},
    (JOB, "jobInfrastructureConfigurationDetails"): {
        "jobInfrastructureType": "ME_STANDALONE",
        "shapeName": "VM.Standard3.Flex",
        "blockStorageSizeInGbs": 120,
        "jobShapeConfigDetails": {"ocpus": 2.0, "memoryInGbs": 12.0},
    },
    (JOB, "jobStorageMountConfigurationDetailsLists"): [_MOUNT, {**_MOUNT, "destinationDirectoryName": "more"}],
    (SECRET, "secretContent"): {"contentType": "BASE64", "content": "c2Vjb25k"},
    (SECRET, "secretGenerationContext"): {
        "generationType": "PASSPHRASE",
        "generationTemplate": "DBAAS_DEFAULT_PASSWORD",
    },
    (SECRET, "rotationConfig"): {
        "targetSystemDetails": {"targetSystemType": "FUNCTION", "functionId": "ocid1.function.oc1..f"},
        "isScheduledRotationEnabled": True,
        "rotationInterval": "P30D",
    },
    (SECRET, "secretRules"): [{"ruleType": "SECRET_REUSE_RULE", "isEnforcedOnDeletedSecretVersions": True}],
}
