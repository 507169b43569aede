# SPDX-License-Identifier: Apache-2.0
"""What a call is about where its path does not say, and when it needs more than its operation always does.

A row of CIRCUMSTANCES answers for one circumstance of the catalog with the compartments of what it is about; an empty
name means the call's own. Circumstances without a row ask for nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localcloud.api.log_query import scopes_of
from localcloud.api.operations import Call
from localcloud.api.tenancy import TENANCY


@dataclass(frozen=True)
class Elsewhere:
    """What a call is about besides what its path names."""

    compartment: str
    variables: Mapping[str, str]


Circumstance = Callable[[Call], Sequence[str | Elsewhere]]


def _compartment(call: Call, identifier: Any) -> list[str]:
    found = call.store.get(identifier) if isinstance(identifier, str) else None
    return [found.compartment] if found else []


def _body(call: Call, *path: str) -> Any:
    value: Any = call.json()
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _job_setting(call: Call, details: str, override: str, field: str) -> Any:
    """A setting of the job to be made, or of the run and else its job."""
    own = _body(call, details, field) or _body(call, override, field)
    job = call.store.get(str(_body(call, "jobId")))
    return own or ((job.body.get(details) or {}).get(field) if job else None)


def _subnet(call: Call) -> list[str]:
    infrastructure = ("jobInfrastructureConfigurationDetails", "jobInfrastructureConfigurationOverrideDetails")
    layout = ("jobNodeConfigurationDetails", "jobNodeConfigurationOverrideDetails")
    network = _job_setting(call, *layout, "jobNetworkConfiguration")  # where a job of node groups says it
    return _compartment(call, _get(network, "subnetId") or _job_setting(call, *infrastructure, "subnetId"))


def _log_group(call: Call) -> list[str]:
    return _compartment(call, _job_setting(call, *_LOGS, "logGroupId"))


def _auto_log(call: Call) -> list[str]:
    return _log_group(call) if _job_setting(call, *_LOGS, "enableAutoLogCreation") else []


_LOGS = ("jobLogConfigurationDetails", "jobLogConfigurationOverrideDetails")


def _object(existing: bool) -> Circumstance:
    def applies(call: Call) -> list[str]:
        buckets = call.store.live("bucket", name=call.params["bucketName"])
        found = call.store.connection.execute(
            "SELECT 1 FROM objects WHERE bucket = ? AND name = ?",
            (buckets[0].id if buckets else "", call.params["objectName"]),
        ).fetchone()
        return [""] if bool(found) == existing else []

    return applies


def _routed(kind: str) -> Circumstance:
    def applies(call: Call) -> list[str]:
        rules = _body(call, "routeRules")
        targets = [call.store.get(str(_get(rule, "networkEntityId"))) for rule in rules if rules] if rules else []
        return [target.compartment for target in targets if target and target.kind == kind]

    return applies


def _copy_destination(call: Call) -> list[Elsewhere]:
    name = str(_body(call, "destinationBucket"))
    variables = {"target.bucket.name": name, "target.object.name": str(_body(call, "destinationObjectName"))}
    return [Elsewhere(bucket.compartment, variables) for bucket in call.store.live("bucket", name=name)]


def _posted(call: Call) -> list[Elsewhere]:
    """The compartments and namespaces into which metrics go."""
    entries = _body(call, "metricData")
    pairs = {
        (str(_get(entry, "compartmentId")), str(_get(entry, "namespace")))
        for entry in (entries if isinstance(entries, list) else [])
    }
    return [Elsewhere(place, {"target.metrics.namespace": namespace}) for place, namespace in sorted(pairs)]


def _searched(call: Call) -> list[Elsewhere]:
    """Every compartment that a log search names: the first part of each of its scopes."""
    scopes = scopes_of(str(_body(call, "searchQuery")))
    return [Elsewhere(place, {}) for place in sorted({scope[0] for scope in scopes})]


def _pushed(call: Call) -> list[Elsewhere]:
    """The repository that an image is pushed into; one that is not there yet would be made in the tenancy."""
    path = str(_body(call, "image")).partition("@")[0].split("/", 2)[-1]
    name = path.rpartition(":")[0] or path
    found = call.store.live("container-repository", name=name)
    return [Elsewhere(found[0].compartment if found else TENANCY, {"target.repo.name": name})]


def _named_secret(call: Call) -> list[Elsewhere]:
    """The secret that is asked for by its name and its vault."""
    query = call.request.query
    found = call.store.live("secret", name=query.get("secretName", ""), parent=query.get("vaultId", ""))
    return [Elsewhere(one.compartment, {"target.secret.id": one.id, "target.secret.name": one.name}) for one in found]


def _joined(call: Call) -> list[Elsewhere]:
    return _member(call, str(_body(call, "userId")), str(_body(call, "groupId")))


def _left(call: Call) -> list[Elsewhere]:
    membership = call.store.get(call.params["userGroupMembershipId"])
    return _member(call, membership.name, membership.parent) if membership else []


def _member(call: Call, user: str, group: str) -> list[Elsewhere]:
    """A user and a group, by which statements may be narrowed."""
    found = {"user": call.store.get(user), "group": call.store.get(group)}
    variables = {f"target.{kind}.id": row.id for kind, row in found.items() if row}
    return [Elsewhere(TENANCY, variables | {f"target.{kind}.name": row.name for kind, row in found.items() if row})]


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _names(*path: str) -> Circumstance:
    return lambda call: [""] if _body(call, *path) else []


# Operations whose body alone says what they are about, maybe more than one thing. All must be allowed.
ABOUT: Mapping[str, Callable[[Call], Sequence[Elsewhere]]] = {
    "AddUserToGroup": _joined,
    "GetSecretBundleByName": _named_secret,
    "RemoveUserFromGroup": _left,
    "PostMetricData": _posted,
    "PushContainerImage": _pushed,
    "SearchLogs": _searched,
}
CIRCUMSTANCES: Mapping[tuple[str, str], Circumstance] = {
    ("PutObject", "new object"): _object(existing=False),
    ("PutObject", "existing object"): _object(existing=True),
    ("CopyObject", "destination"): _copy_destination,
    ("GetNamespace", "compartment given"): lambda call: [""] if call.request.query.get("compartmentId") else [],
    ("CreateJob", "subnet"): _subnet,
    ("CreateJob", "log group"): _log_group,
    ("CreateJobRun", "subnet"): _subnet,
    ("CreateJobRun", "log group"): _log_group,
    ("CreateJobRun", "auto log creation"): _auto_log,
    ("CreateServiceGateway", "route table"): _names("routeTableId"),
    ("UpdateServiceGateway", "route table"): _names("routeTableId"),
    ("UpdateSubnet", "route table"): _names("routeTableId"),
    ("UpdateSubnet", "security lists"): _names("securityListIds"),
    ("UpdateSubnet", "dhcp options"): _names("dhcpOptionsId"),
    **{
        (operation, f"{added}{kind.replace('-', ' ')}"): _routed(kind)
        for operation, added in (("CreateRouteTable", ""), ("UpdateRouteTable", "added "))
        for kind in ("internet-gateway", "nat-gateway", "service-gateway")
    },
}
