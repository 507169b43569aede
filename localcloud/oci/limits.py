# SPDX-License-Identifier: Apache-2.0
"""Limits: how much of each resource a tenancy may have, and the operations that list them.

The limits of network, object storage and registry have OCI's names. Those of Data Science are derived from the names
of the shapes, because we know no document with OCI's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from catalog.tables import table
from localcloud.oci import tenancy
from localcloud.oci.oci_errors import not_found
from localcloud.oci.ocids import RUN_ACTIVE
from localcloud.oci.operations import ApiCall, ApiOperation
from localcloud.oci.paging import plain_page
from localcloud.server.api_errors import ApiError, invalid_parameter
from localcloud.server.http import Reply

_LIMIT_CODE = "LimitExceeded"


@dataclass(frozen=True)
class Limit:
    """The maximum number of resources of a kind. With a shape: the maximum number of active nodes on that shape."""

    service: str
    name: str
    value: int
    kind: str
    shape: str = ""

    @property
    def described(self) -> str:
        return f"{self.kind.replace('-', ' ')}s{f' on {self.shape}' if self.shape else ''} in the region"


SERVICES = {
    "data-science": "Data Science",
    "object-storage": "Object Storage",
    "vcn": "Virtual Cloud Network",
    "container-registry": "Container Registry",
    "identity": "Identity",
    "logging": "Logging",
}
_COUNTED = (
    Limit("vcn", "vcn-count", 50, "vcn"),
    Limit("vcn", "subnet-count", 15_000, "subnet"),
    Limit("vcn", "network-security-group-count", 10_000, "network-security-group"),
    Limit("vcn", "security-list-count", 15_000, "security-list"),
    Limit("object-storage", "bucket-count", 10_000, "bucket"),
    Limit("container-registry", "container-repository-count", 500, "container-repository"),
    Limit("logging", "log-group-count", 100, "log-group"),
    Limit("identity", "policies-count", 100, "policy"),
    Limit("identity", "dynamic-group-count", 50, "dynamic-group"),
    Limit("data-science", "project-count", 1000, "project"),
    Limit("data-science", "job-count", 1000, "job"),
    Limit("data-science", "job-run-count", 1000, "job-run"),
    Limit("data-science", "notebook-session-count", 100, "notebook-session"),
)
# The local cloud has no real capacity limit. Tests set lower values with faults.
_NODES_ON_A_SHAPE = 1000


@cache
def tenancy_limits() -> tuple[Limit, ...]:
    shapes = (Limit("data-science", shape_limit(name), _NODES_ON_A_SHAPE, "node", name) for name in table("shapes"))
    return (*_COUNTED, *shapes)


def shape_limit(shape: str) -> str:
    return f"ds-{shape.lower().replace('.', '-')}-count"


def find_limit(service: str, name: str) -> Limit | None:
    return next((limit for limit in tenancy_limits() if (limit.service, limit.name) == (service, name)), None)


def limit_value(call: ApiCall, limit: Limit) -> int:
    fault = call.cloud.faults.limit(limit.name)
    return fault.value if fault else limit.value


def count_used(call: ApiCall, limit: Limit) -> int:
    if limit.shape:
        return sum(nodes for shape, nodes in _active_nodes(call) if shape == limit.shape)
    row = call.store.connection.execute("SELECT count(*) FROM resources WHERE kind = ? AND live", (limit.kind,))
    return int(row.fetchone()[0])


def require_room(call: ApiCall, kind: str) -> None:
    """Raises if a limit forbids another resource of this kind. Only limits that a fault sets are enforced."""
    for limit in tenancy_limits():
        if limit.kind == kind and not limit.shape:
            _require_within_limit(call, limit, 1)


def require_nodes(call: ApiCall, shape: str, nodes: int) -> None:
    """Raises if the limit or the capacity forbids `nodes` more nodes on a shape."""
    limit = find_limit("data-science", shape_limit(shape))
    if limit:
        _require_within_limit(call, limit, nodes)
    if call.cloud.faults.strike("no-capacity", call.operation.name, lambda fault: fnmatchcase(shape, fault.shape)):
        raise ApiError(500, "InternalError", f"Out of host capacity for {nodes} node(s) of shape {shape}")


def _require_within_limit(call: ApiCall, limit: Limit, wanted: int) -> None:
    fault = call.cloud.faults.limit(limit.name)
    if fault is None:
        return
    have = count_used(call, limit)
    if have + wanted > fault.value and call.cloud.faults.strike("limit", call.operation.name, lambda row: row == fault):
        raise ApiError(
            400,
            fault.code or _LIMIT_CODE,
            f"The following service limits were exceeded: {limit.name}. {have} of {fault.value} are in use, {wanted}"
            " more were requested. Request a service limit increase",
        )


def _active_nodes(call: ApiCall) -> Iterator[tuple[str, int]]:
    for run in call.store.live("job-run"):
        if run.state in RUN_ACTIVE:
            yield from run.body.get("nodes", [])
    for notebook in call.store.live("notebook-session"):
        yield (notebook.body.get("notebookSessionConfigDetails") or {}).get("shape", ""), 1
    for target in call.store.live("compute-target"):
        configuration = target.body["computeConfigurationDetails"]
        yield configuration["instanceConfiguration"]["instanceShape"], machine_count(configuration)


def machine_count(configuration: Mapping[str, Any]) -> int:
    """The number of machines of a compute target. Nothing scales here, so a scaling target keeps its initial number."""
    policy = configuration["scalingPolicy"]
    scaling = policy.get("autoScalingPolicies")
    return int(scaling[0]["initialInstanceCount"] if scaling else policy["instanceCount"])


def nodes_by_shape(infrastructure: Mapping[str, Any], layout: Mapping[str, Any]) -> list[tuple[str, int]]:
    """(shape, nodes) of each node group of a run. A group on a compute target has an empty shape."""
    groups = layout.get("jobNodeGroupConfigurationDetailsList") or [{}]
    return [
        (
            (group.get("jobInfrastructureConfigurationDetails") or infrastructure).get("shapeName", ""),
            group.get("replicas", 1),
        )
        for group in groups
    ]


SERVICE = "limits"
VERSION = "/20190729"
_SCOPE = "REGION"


def _tenancy_page(call: ApiCall, items: Sequence[Any]) -> Reply:
    if call.needed("compartmentId") != tenancy.TENANCY:
        raise invalid_parameter("compartmentId must be the tenancy: limits belong to the tenancy")
    page, headers = plain_page(items, call.query)
    return Reply(200, page, headers)


def list_limited_services(call: ApiCall) -> Reply:
    return _tenancy_page(call, [{"name": name, "description": text} for name, text in SERVICES.items()])


def _requested_limits(call: ApiCall, service: str) -> list[Limit]:
    name = call.query.get("name")
    return [row for row in tenancy_limits() if service in ("", row.service) and name in (None, row.name)]


def list_limit_values(call: ApiCall) -> Reply:
    rows = _requested_limits(call, call.needed("serviceName"))
    if call.query.get("scopeType", _SCOPE) != _SCOPE:
        rows = []
    return _tenancy_page(
        call, [{"name": row.name, "scopeType": _SCOPE, "value": limit_value(call, row)} for row in rows]
    )


def list_limit_definitions(call: ApiCall) -> Reply:
    rows = _requested_limits(call, call.query.get("serviceName", ""))
    shown = [
        {
            "name": row.name, "serviceName": row.service, "description": row.described, "scopeType": _SCOPE,
            "areQuotasSupported": False, "isResourceAvailabilitySupported": True, "isDeprecated": False,
            "isEligibleForLimitIncrease": True, "isDynamic": False,
        }
        for row in rows
    ]  # fmt: skip
    return _tenancy_page(call, shown)


def get_resource_availability(call: ApiCall) -> Reply:
    call.needed("compartmentId")
    limit = find_limit(call.params["serviceName"], call.params["limitName"])
    if limit is None:
        raise not_found(f"limit {call.params['limitName']} of the service {call.params['serviceName']}")
    used, value = count_used(call, limit), limit_value(call, limit)
    available = max(0, value - used)
    fractions = {"fractionalUsage": float(used), "fractionalAvailability": float(available)}
    return Reply(200, {"used": used, "available": available, **fractions, "effectiveQuotaValue": float(value)})


def limit_operations() -> list[ApiOperation]:
    one = f"{VERSION}/services/{{serviceName}}/limits/{{limitName}}/resourceAvailability"
    return [
        ApiOperation("ListServices", "GET", f"{VERSION}/services", list_limited_services, SERVICE),
        ApiOperation("ListLimitValues", "GET", f"{VERSION}/limitValues", list_limit_values, SERVICE),
        ApiOperation("ListLimitDefinitions", "GET", f"{VERSION}/limitDefinitions", list_limit_definitions, SERVICE),
        ApiOperation("GetResourceAvailability", "GET", one, get_resource_availability, SERVICE),
    ]
