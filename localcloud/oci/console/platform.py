# SPDX-License-Identifier: Apache-2.0
"""OCI in the console, from the tables of the API: its sections, and the content of its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from components.oci.types.security_rules import read_security_rule
from components.values.security_rules import DIRECTIONS, Direction
from localcloud.console.platform import (
    ENTRIES,
    MANY,
    RULE_COLUMNS,
    Item,
    PlaceNames,
    RunContent,
    RunNode,
    Section,
    last_output_lines,
    rule_row,
)
from localcloud.oci import tenancy
from localcloud.oci.console.training_runs import OciRun, RunBook
from localcloud.oci.operations import OciCloud
from localcloud.oci.services.network import gateways
from localcloud.oci.services.object_storage import listing
from localcloud.oci.tenancy_store import StateStore, StoredResource
from localcloud.server import http, progress_record


class OciConsole:
    """Implements `localcloud.console.platform.ConsolePlatform`."""

    places = PlaceNames(
        {gateways.OBJECT_STORAGE_ADDRESS: "Object Storage", gateways.SERVICES_ADDRESS: "OCI services"},
        addresses_of=gateways.service_addresses,
    )

    def __init__(self, cloud: OciCloud) -> None:
        self._cloud = cloud
        self._book = RunBook(cloud.store)

    async def runs(self) -> Sequence[OciRun]:
        return await self._book.latest()

    async def content(self, run: OciRun, most: int) -> RunContent:
        buckets = self._cloud.store.live("bucket", name=run.place.bucket) if run.place else ()
        bucket = buckets[0].id if buckets else ""
        points = (
            progress_record.recorded_progress(self._cloud.store, bucket, run.place.prefix, most)
            if run.place and bucket
            else {}
        )
        statuses = {node.rank: _read_launcher_status(self._cloud, run, node, bucket) for node in run.nodes}
        job, first = self._cloud.store.get(run.job), self._cloud.store.get(run.key)
        body = first.body if first else {}
        times = [[name, str(body[field])] for name, field in _TIMES if body.get(field)]
        facts = [["job", job.name if job else run.job], *times]
        return RunContent(facts, statuses, points, _last_logged_lines(self._cloud, run))

    async def sections(self) -> Sequence[Section]:
        store = self._cloud.store
        return (
            Section("Networks", list(_network_items(store)), "No network."),
            Section("Who may do what", list(_oci_access_items(store)), "No policies."),
            Section("Buckets", list(_bucket_items(store)), "No buckets."),
            Section("Jobs", list(_oci_job_items(store)), "No jobs."),
            Section("Defaults that no subnet uses", list(_unused_default_items(store)), last=True),
        )

    def facts(self) -> Sequence[tuple[str, str]]:
        return list(tenancy.tenancy_facts().items())


# How many objects of a bucket are counted at most.
_COUNTED = 10_000
# How many logs of a run are read. Our runs print to one log.
_LOGS = 4
# The log may still get lines for this long after the end of a run.
_LATE_SECONDS = 120.0
_TIMES = (("accepted", "timeAccepted"), ("started", "timeStarted"), ("finished", "timeFinished"))


def _latest_resources(store: StateStore, kind: str) -> list[StoredResource]:
    return store.select("kind = ? AND live ORDER BY sequence DESC LIMIT ?", (kind, MANY))


def _compartment_name(store: StateStore, resource: StoredResource) -> str:
    compartment = store.get(resource.compartment)
    return compartment.name if compartment else resource.compartment


def _oci_access_items(store: StateStore) -> Iterator[Item]:
    for policy in _latest_resources(store, "policy"):
        statements = [[statement] for statement in policy.body["statements"]]
        tables = [{"columns": ["statement"], "rows": statements}]
        yield {"name": policy.name, "state": f"policy in {_compartment_name(store, policy)}", "tables": tables}
    for group in _latest_resources(store, "dynamic-group"):
        yield {"name": group.name, "state": "dynamic group", "text": [group.body["matchingRule"]]}


def _bucket_items(store: StateStore) -> Iterator[Item]:
    for bucket in _latest_resources(store, "bucket"):
        count, size = store.connection.execute(
            "SELECT count(*), coalesce(sum(size), 0) FROM (SELECT size FROM objects WHERE bucket = ? LIMIT ?)",
            (bucket.id, _COUNTED),
        ).fetchone()
        least = "at least " if count == _COUNTED else ""
        objects = store.connection.execute(
            "SELECT name, size, modified FROM objects WHERE bucket = ? ORDER BY name LIMIT ?", (bucket.id, MANY)
        )
        rows = [[name, str(size_of), http.format_rfc3339(modified)] for name, size_of, modified in objects]
        yield {
            "name": bucket.name,
            "state": f"{least}{count} objects, {least}{size} bytes",
            "facts": [["compartment", _compartment_name(store, bucket)], ["id", bucket.id]],
            "tables": [{"columns": ["object", "bytes", "modified"], "rows": rows}] if rows else [],
        }


def _oci_job_items(store: StateStore) -> Iterator[Item]:
    for job in _latest_resources(store, "job"):
        infrastructure = job.body.get("jobInfrastructureConfigurationDetails") or {}
        configuration = job.body.get("jobConfigurationDetails") or {}
        environment = job.body.get("jobEnvironmentConfigurationDetails") or {}
        yield {
            "name": job.name,
            "state": job.shown_state,
            "facts": [
                ["id", job.id],
                ["shape", infrastructure.get("shapeName") or ""],
                ["compute target", infrastructure.get("computeTargetId") or "none"],
                ["subnet", infrastructure.get("subnetId") or "none (the service's own network)"],
                ["image", environment.get("image") or "none"],
                ["variables", ", ".join(sorted(configuration.get("environmentVariables") or {}))],
            ],
        }


def _read_launcher_status(cloud: OciCloud, run: OciRun, node: RunNode, bucket: str) -> Mapping[str, Any]:
    """The status object of the node's launcher; empty if there is none."""
    if run.place is None or not bucket:
        return {}
    item = listing.find_object(cloud.store, bucket, run.place.status(node.rank))
    return (
        progress_record.read_status_file(cloud.objects / item.file)
        if item and item.size <= progress_record.LONGEST_BYTES
        else {}
    )


def _last_logged_lines(cloud: OciCloud, run: OciRun) -> list[str]:
    """The last lines of all ranks, ordered by time."""
    ranks = {node.run.id: node for node in run.nodes}
    logs = {node.log for node in run.nodes if node.log}
    ends = [http.parse_rfc3339(node.run.finished_at) for node in run.nodes if node.run.finished_at]
    last = (
        max(ends) + _LATE_SECONDS if run.over and len(ends) == len(run.nodes) else http.current_moment() + _LATE_SECONDS
    )
    lines: list[tuple[float, int, str, str]] = []
    for log in sorted(logs)[:_LOGS]:
        rows = cloud.store.connection.execute(
            f"SELECT time, sequence, source, subject, data FROM log_lines WHERE log = ? AND time BETWEEN ? AND ?"
            f" AND source IN ({', '.join('?' * len(ranks))}) ORDER BY time DESC, sequence DESC LIMIT ?",
            (log, run.created - _LATE_SECONDS, last, *ranks, ENTRIES),
        )
        for moment, sequence, source, subject, data in rows:
            rank = subject if "/" in subject else str(ranks[source].rank)
            lines.append((moment, sequence, rank, str(data)))
    return last_output_lines(run, (entry[2:] for entry in sorted(lines)[-ENTRIES:]))


Table = dict[str, Any]


def _network_items(store: StateStore) -> Iterator[dict[str, Any]]:
    for vcn in store.select("kind = 'vcn' AND live ORDER BY sequence DESC LIMIT ?", (MANY,)):
        gateways = (
            [kind.replace("-", " "), gateway.name]
            for kind in ("internet-gateway", "nat-gateway", "service-gateway")
            for gateway in store.live(kind, parent=vcn.id)
        )
        yield {
            "name": vcn.name,
            "state": ", ".join(vcn.body.get("cidrBlocks") or []),
            "facts": [["id", vcn.id], *gateways],
            "tables": list(_network_tables(store, vcn)),
        }


def _unused_default_items(store: StateStore) -> Iterator[dict[str, Any]]:
    """The lists and tables that come with each VCN and that no subnet uses."""
    for vcn in store.select("kind = 'vcn' AND live ORDER BY sequence DESC LIMIT ?", (MANY,)):
        tables = [table for resource, table in _rule_tables(store, vcn) if _is_unused_default(store, vcn, resource)]
        if tables:
            yield {"name": vcn.name, "state": _field_text(vcn.body, "id"), "tables": tables}


def _is_unused_default(store: StateStore, vcn: StoredResource, resource: StoredResource) -> bool:
    defaults = (vcn.body.get("defaultSecurityListId"), vcn.body.get("defaultRouteTableId"))
    return resource.id in defaults and not store.mentioning(resource.id, ("subnet",))


def _network_tables(store: StateStore, vcn: StoredResource) -> Iterator[Table]:
    subnets = store.live("subnet", parent=vcn.id)[:MANY]
    if subnets:
        columns = ["subnet", "addresses", "public addresses", "route table", "security lists"]
        rows = [
            [
                subnet.name,
                _field_text(subnet.body, "cidrBlock"),
                "no" if subnet.body.get("prohibitPublicIpOnVnic") else "yes",
                _resource_name(store, _field_text(subnet.body, "routeTableId")),
                ", ".join(_resource_name(store, identifier) for identifier in subnet.body.get("securityListIds") or []),
            ]
            for subnet in subnets
        ]
        yield {"columns": columns, "rows": rows}
    for resource, table in _rule_tables(store, vcn):
        if not _is_unused_default(store, vcn, resource):
            yield table
    for group in store.live("network-security-group", parent=vcn.id)[:MANY]:
        rows = [_security_rule_row(store, rule["direction"].lower(), rule) for rule in _field_list(group, "rules")]
        yield {"title": f"Security group {group.name}", "columns": RULE_COLUMNS, "rows": rows}


def _rule_tables(store: StateStore, vcn: StoredResource) -> Iterator[tuple[StoredResource, Table]]:
    """Route tables with routes, and security lists."""
    for table in store.live("route-table", parent=vcn.id)[:MANY]:
        rows = [
            [_field_text(rule, "destination"), _resource_name(store, _field_text(rule, "networkEntityId"))]
            for rule in _field_list(table, "routeRules")
        ]
        if rows:
            yield table, {"title": f"Route table {table.name}", "columns": ["to", "through"], "rows": rows}
    for security in store.live("security-list", parent=vcn.id)[:MANY]:
        sides = ((direction, f"{direction}SecurityRules") for direction in DIRECTIONS)
        rows = [
            _security_rule_row(store, direction, rule)
            for direction, field in sides
            for rule in _field_list(security, field)
        ]
        yield security, {"title": f"Security list {security.name}", "columns": RULE_COLUMNS, "rows": rows}


def _security_rule_row(store: StateStore, direction: Direction, body: Mapping[str, Any]) -> list[str]:
    rule = read_security_rule(body, direction)
    return rule_row(rule, _resource_name(store, rule.peer))


def _resource_name(store: StateStore, identifier: str) -> str:
    resource = store.get(identifier) if identifier.startswith("ocid1.") else None
    return resource.name if resource else identifier


def _field_text(value: Mapping[str, Any], name: str) -> str:
    return str(value.get(name) or "")


def _field_list(resource: StoredResource, name: str) -> list[Mapping[str, Any]]:
    return list(resource.body.get(name) or [])


def make(cloud: OciCloud) -> OciConsole:
    return OciConsole(cloud)
