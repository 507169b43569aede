# SPDX-License-Identifier: Apache-2.0
"""The resource types of the plugin: one row per type, by the conventions of OCI's API and its SDK.

A row with the noun `vcn` calls `create_vcn`, `get_vcn`, `update_vcn` and `delete_vcn`, with the models
`CreateVcnDetails` and `UpdateVcnDetails`. `behaviour` names a class under localcloud.oci.plugin.behaviours, for a type
with other calls. The states that the plugin waits for are in catalog/oci_provider_calls.toml.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from catalog.tables import table
from components.values.resource_types import PluginType


@dataclass(frozen=True)
class ResourceTypeRow(PluginType):
    service: str  # the SDK's package
    client: str  # a row of components.oci.client.session.CLIENTS
    noun: str
    model: str
    # The operation that lists a compartment's resources, for types with unique names that are not their ids.
    listed: str = field(default="", kw_only=True)
    # Inputs that precede the id in the SDK's calls.
    within: tuple[str, ...] = ()
    # Pulumi name -> API name, for top-level properties that break the convention.
    renamed: Mapping[str, str] = field(default_factory=dict)
    # Logging answers 202 with a work request, which names the new resource under this entity type.
    entity: str = ""
    delete_options: Mapping[str, str] = field(default_factory=dict)  # the SDK's option -> input
    # What Oracle's provider shows where the API answers with nothing.
    empty: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    # The provider stores system tags of few types, although the API has them for many.
    shows_system_tags: bool = field(default=False, kw_only=True)
    # Whether an update follows each move, even if nothing else changes.
    updates_after_move: bool = field(default=False, kw_only=True)


def _core(noun: str, model: str, **more: Any) -> ResourceTypeRow:
    return ResourceTypeRow("core", "core", noun, model, **more)


def _with_states(token: str, row: ResourceTypeRow) -> ResourceTypeRow:
    """The row with the states for which the real provider waits, and with its behaviour after a move."""
    life = table("oci_provider_calls")["types"][token]
    moved = life.get("changed", {}).get("compartmentId", ())
    return replace(
        row,
        ready=frozenset(life.get("ready", ())),
        gone=frozenset(life.get("gone", ())),
        updates_after_move=any(call.startswith("Update") for call in moved),
    )


_ROWS: Mapping[str, ResourceTypeRow] = {
    "oci:Core/vcn:Vcn": _core(
        "vcn",
        "Vcn",
        behaviour="network.VcnResource",
        empty={
            "byoipv6cidrBlocks": [],
            "byoipv6cidrDetails": [],
            "ipv6cidrBlocks": [],
            "ipv6privateCidrBlocks": [],
            "isIpv6enabled": False,
            "securityAttributes": {},
        },
    ),
    "oci:Core/subnet:Subnet": _core("subnet", "Subnet", empty={"ipv6cidrBlocks": []}),
    "oci:Core/securityList:SecurityList": _core(
        "security_list", "SecurityList", behaviour="network.SecurityListResource"
    ),
    "oci:Core/routeTable:RouteTable": _core("route_table", "RouteTable"),
    "oci:Core/natGateway:NatGateway": _core("nat_gateway", "NatGateway"),
    "oci:Core/serviceGateway:ServiceGateway": _core("service_gateway", "ServiceGateway"),
    "oci:Core/internetGateway:InternetGateway": _core(
        "internet_gateway", "InternetGateway", renamed={"enabled": "isEnabled"}, defaults={"enabled": True}
    ),
    "oci:Core/networkSecurityGroup:NetworkSecurityGroup": _core("network_security_group", "NetworkSecurityGroup"),
    "oci:Core/networkSecurityGroupSecurityRule:NetworkSecurityGroupSecurityRule": _core(
        "network_security_group_security_rule", "SecurityRule", behaviour="network.GroupRuleResource"
    ),
    "oci:Identity/dynamicGroup:DynamicGroup": ResourceTypeRow(
        "identity",
        "identity",
        "dynamic_group",
        "DynamicGroup",
        existing="access: {{ existing: true, runs: {} }}",
        listed="list_dynamic_groups",
        named="name",
    ),
    "oci:Identity/policy:Policy": ResourceTypeRow(
        "identity",
        "identity",
        "policy",
        "Policy",
        existing="access: {{ existing: true }}",
        listed="list_policies",
        named="name",
    ),
    "oci:ObjectStorage/bucket:Bucket": ResourceTypeRow(
        "object_storage",
        "object_storage",
        "bucket",
        "Bucket",
        renamed={"accessType": "publicAccessType", "bucketId": "id"},
        defaults={"accessType": "NoPublicAccess"},
        extra=frozenset({"namespace"}),
        empty={"bucketScope": "", "retentionRules": []},
        named="name",
        existing="bucket: {{ existing: {} }}",
        behaviour="storage.BucketResource",
    ),
    "oci:ObjectStorage/storageObject:StorageObject": ResourceTypeRow(
        "object_storage", "object_storage", "object", "ObjectSummary", behaviour="storage.ObjectResource"
    ),
    "oci:Artifacts/containerRepository:ContainerRepository": ResourceTypeRow(
        "artifacts",
        "artifacts",
        "container_repository",
        "ContainerRepository",
        existing="registry: {{ existing: {} }}",
        listed="list_container_repositories",
        shows_system_tags=True,
    ),
    "oci:Logging/logGroup:LogGroup": ResourceTypeRow(
        "logging",
        "logging",
        "log_group",
        "LogGroup",
        entity="loggroup",
        existing="logs: {{ existing: {{ group: {} }} }}",
        listed="list_log_groups",
        behaviour="jobs.WorkRequestResource",
    ),
    "oci:Logging/log:Log": ResourceTypeRow(
        "logging",
        "logging",
        "log",
        "Log",
        entity="log",
        within=("logGroupId",),
        existing="logs: {{ existing: {{ group: GROUP, log: {} }} }}",
        listed="list_logs",
        behaviour="jobs.LogResource",
    ),
    "oci:DataScience/project:Project": ResourceTypeRow(
        "data_science", "data_science", "project", "Project", shows_system_tags=True
    ),
    "oci:DataScience/job:Job": ResourceTypeRow(
        "data_science",
        "data_science",
        "job",
        "Job",
        defaults={"deleteRelatedJobRuns": False},
        extra=frozenset({"jobArtifact", "artifactContentLength", "artifactContentDisposition", "deleteRelatedJobRuns"}),
        empty={"jobStorageMountConfigurationDetailsLists": []},
        delete_options={"delete_related_job_runs": "deleteRelatedJobRuns"},
        behaviour="jobs.JobResource",
    ),
    "oci:DataScience/computeTarget:ComputeTarget": ResourceTypeRow(
        "data_science",
        "data_science",
        "compute_target",
        "ComputeTarget",
        entity="compute-target",
        renamed={"computeTargetSystemDatas": "computeTargetSystemData"},
        behaviour="jobs.ComputeTargetResource",
    ),
    "oci:Vault/secret:Secret": ResourceTypeRow(
        "vault",
        "vault",
        "secret",
        "Secret",
        renamed={"sourceRegionInformations": "sourceRegionInformation"},
        behaviour="jobs.SecretResource",
    ),
}

ROWS: Mapping[str, ResourceTypeRow] = {token: _with_states(token, row) for token, row in _ROWS.items()}
