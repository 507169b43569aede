# SPDX-License-Identifier: Apache-2.0
"""The functions of Pulumi's provider `oci` that programs call here: one row each, by OCI's conventions.

`oci:Core/getRouteTables:getRouteTables` calls ListRouteTables of the SDK's package `core`. All pages of a list are
read. The calls are those of Oracle's provider, as for components/oci/types/oci_resource_type.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from components.oci.types.oci_resource_type import Calls, camel_case, pascal_case, snake_case


@dataclass(frozen=True, kw_only=True)
class OciFunction:
    # The SDK's package, whose name is also that of its client.
    service: str
    operation: str
    # The file in the provider's source, below internal/service.
    source: str
    # The inputs that are the SDK's positional arguments. `tenancyId` is by default the caller's tenancy.
    arguments: tuple[str, ...] = ()
    # The SDK's options, and their inputs.
    options: Mapping[str, str] = field(default_factory=dict)
    # Options that Oracle's provider always passes.
    always: Mapping[str, Any] = field(default_factory=dict)
    # The name of the list in the result. Without it the result is the resource itself.
    plural: str = ""
    # A further operation that Oracle's provider calls with the same arguments.
    also: str = ""
    # Whether the list is inside a collection, under `items`.
    collection: bool = False

    @property
    def calls(self) -> Calls:
        return tuple(pascal_case(name) for name in (self.operation, self.also) if name)


def oci_function(
    token: str, arguments: str = "", options: str = "", plural: str = "", **differing: Any
) -> tuple[str, OciFunction]:
    """The row of a function, with its lists as words in a text. Options are the SDK's."""
    _, path, name = token.split(":")
    service, noun = snake_case(path.partition("/")[0]), snake_case(name.removeprefix("get"))
    package = service.replace("_", "")
    fields: dict[str, Any] = {
        "service": service,
        "operation": f"{'list' if plural else 'get'}_{noun}",
        "source": f"{package}/{package}_{noun}_data_source.go",
        "arguments": tuple(arguments.split()),
        "options": {option: _RENAMED.get(option) or camel_case(option) for option in options.split()},
        "plural": plural,
        **differing,
    }
    return token, OciFunction(**fields)


_RENAMED = {"lifecycle_state": "state"}
_NAMED = "display_name lifecycle_state"
_IN = "compartmentId"

FUNCTIONS: Mapping[str, OciFunction] = dict((
    oci_function("oci:ObjectStorage/getNamespace:getNamespace", plural="namespace", operation="get_namespace"),
    oci_function(
        "oci:ObjectStorage/getBucket:getBucket", "namespace name", also="list_retention_rules",
        always={"fields": ["approximateCount", "approximateSize", "autoTiering"]},
    ),
    oci_function("oci:Core/getServices:getServices", plural="services"),
    oci_function("oci:Core/getVcn:getVcn", "vcnId"),
    oci_function("oci:Core/getVcns:getVcns", _IN, _NAMED, "virtualNetworks"),
    oci_function("oci:Core/getSubnet:getSubnet", "subnetId"),
    oci_function("oci:Core/getSubnets:getSubnets", _IN, f"{_NAMED} vcn_id", "subnets"),
    oci_function("oci:Core/getRouteTables:getRouteTables", _IN, f"{_NAMED} vcn_id", "routeTables"),
    oci_function("oci:Identity/getRegionSubscriptions:getRegionSubscriptions", "tenancyId", "", "regionSubscriptions"),
    oci_function("oci:Identity/getAvailabilityDomains:getAvailabilityDomains", _IN, "", "availabilityDomains"),
    oci_function("oci:Identity/getCompartment:getCompartment", "id"),
    oci_function("oci:Identity/getTenancy:getTenancy", "tenancyId"),
    oci_function("oci:Identity/getGroups:getGroups", _IN, "name lifecycle_state", "groups"),
    oci_function("oci:Artifacts/getContainerRepository:getContainerRepository", "repositoryId"),
    oci_function(
        "oci:Artifacts/getContainerRepositories:getContainerRepositories", _IN,
        f"{_NAMED} compartment_id_in_subtree is_public repository_id", "containerRepositoryCollections",
        collection=True,
    ),
    oci_function("oci:DataScience/getProject:getProject", "projectId"),
    oci_function("oci:DataScience/getProjects:getProjects", _IN, _NAMED, "projects"),
    oci_function("oci:DataScience/getComputeTarget:getComputeTarget", "computeTargetId"),
    oci_function("oci:DataScience/getComputeTargets:getComputeTargets", _IN, f"{_NAMED} id", "computeTargets"),
    oci_function("oci:Logging/getLogGroup:getLogGroup", "logGroupId"),
    oci_function("oci:Logging/getLogGroups:getLogGroups", _IN, "display_name", "logGroups"),
    oci_function("oci:Logging/getLog:getLog", "logGroupId logId"),
    oci_function("oci:Logging/getLogs:getLogs", "logGroupId", _NAMED, "logs"),
))  # fmt: skip
