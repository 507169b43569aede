# SPDX-License-Identifier: Apache-2.0
"""The resource types of the plugin: one row per type, by the conventions of OCI's API and its SDK.

A row with the noun `vcn` calls `create_vcn`, `get_vcn`, `update_vcn` and `delete_vcn`, with the models
`CreateVcnDetails` and `UpdateVcnDetails`. Where a type has behaviour, the row names it (`behaviour`, a class
under localcloud.plugin.oci.behaviours).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from localcloud.plugin.rows import TypeRow


@dataclass(frozen=True)
class ResourceTypeRow(TypeRow):
    service: str  # the SDK's package
    client: str  # a row of provider.oci.session.CLIENTS
    noun: str
    model: str
    ready: frozenset[str] = field(default=frozenset({"AVAILABLE"}), kw_only=True)
    gone: frozenset[str] = field(default=frozenset({"TERMINATED"}), kw_only=True)
    import_id: str = field(default="OCID", kw_only=True)
    # Inputs that precede the id in the SDK's calls.
    within: tuple[str, ...] = ()
    # Pulumi name -> API name, for top-level properties that break the convention.
    renamed: Mapping[str, str] = field(default_factory=dict)
    # Logging answers 202 with a work request, which names the new resource under this entity type.
    entity: str = ""
    delete_options: Mapping[str, str] = field(default_factory=dict)  # the SDK's option -> input


def _core(noun: str, model: str, **more: Any) -> ResourceTypeRow:
    return ResourceTypeRow("core", "core", noun, model, **more)


_IDENTITY: Mapping[str, Any] = {"ready": frozenset({"ACTIVE"}), "gone": frozenset({"DELETED"}), "named": "name"}
_SCIENCE: Mapping[str, Any] = {"ready": frozenset({"ACTIVE", "CREATING"}), "gone": frozenset({"DELETED"})}
_LOGGING: Mapping[str, Any] = {"ready": frozenset({"ACTIVE", "INACTIVE"}), "gone": frozenset({"DELETED"})}

ROWS: Mapping[str, ResourceTypeRow] = {
    "oci:Core/vcn:Vcn": _core("vcn", "Vcn", behaviour="addresses.VcnResource"),
    "oci:Core/subnet:Subnet": _core("subnet", "Subnet"),
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
        **_IDENTITY,
    ),
    "oci:Identity/policy:Policy": ResourceTypeRow(
        "identity", "identity", "policy", "Policy", existing="access: {{ existing: true }}", **_IDENTITY
    ),
    "oci:ObjectStorage/bucket:Bucket": ResourceTypeRow(
        "object_storage",
        "object_storage",
        "bucket",
        "Bucket",
        renamed={"accessType": "publicAccessType", "bucketId": "id"},
        defaults={"accessType": "NoPublicAccess"},
        extra=frozenset({"namespace"}),
        named="name",
        existing="bucket: {{ existing: {} }}",
        import_id="n/NAMESPACE/b/{}",
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
        gone=frozenset({"DELETED"}),
        existing="registry: {{ existing: {} }}",
    ),
    "oci:Logging/logGroup:LogGroup": ResourceTypeRow(
        "logging",
        "logging",
        "log_group",
        "LogGroup",
        entity="loggroup",
        existing="logs: {{ existing: {{ group: {} }} }}",
        behaviour="logging.LoggingResource",
        **_LOGGING,
    ),
    "oci:Logging/log:Log": ResourceTypeRow(
        "logging",
        "logging",
        "log",
        "Log",
        entity="log",
        within=("logGroupId",),
        existing="logs: {{ existing: {{ group: GROUP, log: {} }} }}",
        behaviour="logging.LoggingResource",
        **_LOGGING,
    ),
    "oci:DataScience/project:Project": ResourceTypeRow(
        "data_science", "data_science", "project", "Project", **_SCIENCE
    ),
    "oci:DataScience/job:Job": ResourceTypeRow(
        "data_science",
        "data_science",
        "job",
        "Job",
        defaults={"deleteRelatedJobRuns": False},
        extra=frozenset({"jobArtifact", "artifactContentLength", "artifactContentDisposition", "deleteRelatedJobRuns"}),
        delete_options={"delete_related_job_runs": "deleteRelatedJobRuns"},
        behaviour="science.JobResource",
        **_SCIENCE,
    ),
    "oci:Vault/secret:Secret": ResourceTypeRow(
        "vault",
        "vault",
        "secret",
        "Secret",
        ready=frozenset({"ACTIVE"}),
        gone=frozenset({"DELETED", "PENDING_DELETION", "SCHEDULING_DELETION"}),
        renamed={"sourceRegionInformations": "sourceRegionInformation"},
        behaviour="vault.SecretResource",
    ),
}
