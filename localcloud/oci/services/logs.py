# SPDX-License-Identifier: Apache-2.0
"""Logging: log groups, logs, and their lines, also VCN flow logs of the firewalls of nodes.

A write to a group or log is answered with 202, a work request and an empty body. Records of flow logs have the format
of Oracle's "Details for VCN Flow Logs". A firewall here counts by peer, protocol and port. So a record stands for all
refused packets, or all accepted connections, with the same peer, protocol and port since the last record. Source ports
and bytes are 0.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

from components.values.protocols import parse_protocol, protocol_title
from localcloud.oci import kinds, ocids, tenancy
from localcloud.oci.kinds import ResourceKind, WorkRequestNames
from localcloud.oci.log_lines import forget_lines, write_lines
from localcloud.oci.log_query import LogQuery, parse_log_query
from localcloud.oci.oci_errors import missing_parameter, not_found, related_not_found
from localcloud.oci.ocids import RUN_ACTIVE
from localcloud.oci.operations import ApiCall, ApiOperation, OciCloud
from localcloud.oci.paging import limit_of, offset_of, write_page
from localcloud.oci.tenancy_store import StateStore, StoredResource
from localcloud.oci.work_requests import add_work_request
from localcloud.server import http
from localcloud.server.api_errors import invalid_parameter
from localcloud.server.http import Json, Reply

SERVICE = "logging"
VERSION = "/20200531"
# The type of a run's output lines. They are always text, even if they look like JSON.
RUN_OUTPUT = "com.oraclecloud.datascience.jobrun.stdout"
_CHANGES = frozenset({"Create", "Update", "Delete", "Move"})
# The type of a record in a flow log.
FLOW_RECORD = "com.oraclecloud.vcn.flowlogs.DataEvent"
SERVICE_LOG = "SERVICE"
# The type, service and category of a flow log's source. The category `subnet` would add a capture filter.
_FLOW_SOURCE = ("OCISERVICE", "flowlogs", "all")
# The counts that are recorded already, by flow.
RecordedFlows = dict[tuple[Any, ...], int]


def _enabled_state(body: Json) -> Json:
    return {**body, "lifecycleState": "ACTIVE" if body.get("isEnabled", True) else "INACTIVE"}


GROUP = ResourceKind(
    "log-group", "LogGroup", SERVICE, f"{VERSION}/logGroups", "logGroupId", ocids.LOGGING,
    ocid="loggroup", summary="LogGroupSummary", unique_in="compartment", held_by=("log",), brings=("log",),
    work_requests=WorkRequestNames("loggroup", "{verb}_LOG_GROUP", silent=True), asynchronous=_CHANGES,
)  # fmt: skip
LOG = ResourceKind(
    "log", "Log", SERVICE, f"{VERSION}/logGroups/{{logGroupId}}/logs", "logId", ocids.LOGGING,
    parent_param="logGroupId", summary="LogSummary", unique_in="parent",
    defaults={"isEnabled": True, "retentionDuration": 30, "tenancyId": tenancy.TENANCY},
    work_requests=WorkRequestNames("log", "{verb}_LOG", silent=True), asynchronous=_CHANGES,
    verbs=("Create", "Get", "List", "Update", "Delete"),
    filters={
        "sourceService": "json_extract(body, '$.configuration.source.service')",
        "sourceResource": "json_extract(body, '$.configuration.source.resource')",
    },
    on_create=lambda call, body: _enabled_state(_require_source(call, body)),
    on_update=lambda call, resource, body: _enabled_state(_keep_source(resource, body)),
    on_delete=lambda call, log: forget_lines(call.store, log.id),
)  # fmt: skip


def record_flows(cloud: OciCloud, run: StoredResource, document: Mapping[str, Any]) -> None:
    """Appends the new counts of a run's firewalls to the flow logs of its subnet."""
    moment = http.current_moment()
    records = list(new_flow_records(document, cloud.recorded_flows.setdefault(run.id, {}), moment))
    subnet = str(run.body.get("subnet", ""))
    for log in cloud.store.live("log"):
        if log.state != "ACTIVE" or not subnet or _subnet_of(log) != subnet:
            continue
        for vnic, data in records:
            line = (moment, uuid.uuid4().hex[:8], json.dumps(data))
            write_lines(cloud.store, log.id, run.id, "-", vnic, FLOW_RECORD, [line])


def put_logs(call: ApiCall) -> Reply:
    log = call.store.get(call.params["logId"])
    if log is None or log.kind != LOG.name or not log.live:
        raise not_found("log")
    if log.body.get("logType") == SERVICE_LOG:
        raise invalid_parameter("only the service itself writes to a log of the type SERVICE")
    for batch in call.details().get("logEntryBatches", []):
        default = (
            http.parse_rfc3339(batch["defaultlogentrytime"])
            if "defaultlogentrytime" in batch
            else http.current_moment()
        )
        lines = [
            (
                http.parse_rfc3339(entry["time"]) if "time" in entry else default,
                entry.get("id") or str(uuid.uuid4()),
                entry.get("data", ""),
            )
            for entry in batch.get("entries", [])
        ]
        source, subject, type_ = (str(batch.get(name, "")) for name in ("source", "subject", "type"))
        write_lines(call.store, log.id, call.principal.id, source, subject, type_, lines)
    return Reply(200)


def search_logs(call: ApiCall) -> Reply:
    """Answers at once. A search of flow logs first reads the counts of the running nodes."""
    details = call.details()
    query = parse_log_query(details["searchQuery"])
    logs: dict[str, StoredResource] = {}
    for scope in query.scopes:
        compartment, group, log = (*scope, "", "")[:3]
        for candidate in call.store.live(LOG.name):
            parent = call.store.get(candidate.parent)
            if parent is None or compartment not in (parent.compartment, tenancy.TENANCY):
                continue
            if group in ("", parent.id, parent.name) and log in ("", candidate.id, candidate.name):
                logs[candidate.id] = candidate
    subnets = {subnet for log in logs.values() if (subnet := _subnet_of(log))}
    runs = [run for run in call.store.live("job-run") if run.state in RUN_ACTIVE and run.body.get("subnet") in subnets]
    if not runs:
        return _search_results(call, details, query, logs)

    async def search() -> Reply:
        for run in runs:
            document = await call.cloud.evidence(run.id)
            current = call.store.get(run.id)
            # If the run has ended meanwhile, its last counts were recorded at its end.
            if current is not None and current.state in RUN_ACTIVE:
                with call.store.transaction():
                    record_flows(call.cloud, current, document)
        return _search_results(call, details, query, logs)

    return Reply(later=search)


def _search_results(call: ApiCall, details: Json, query: LogQuery, logs: Mapping[str, StoredResource]) -> Reply:
    limit = min(limit_of(call.query, 500), query.limit or 1000)
    offset = offset_of(call.query)
    where, values = query.where
    start, end = http.parse_rfc3339(details["timeStart"]), http.parse_rfc3339(details["timeEnd"])
    rows = call.store.connection.execute(
        "SELECT log, time, ingested, id, source, subject, type, data FROM log_lines"
        f" WHERE log IN ({', '.join('?' * len(logs))}) AND time BETWEEN ? AND ? AND {where}"
        f" ORDER BY time {query.order}, sequence {query.order} LIMIT ? OFFSET ?",
        [*logs, start, end, *values, limit + 1, offset],
    ).fetchall()
    results = [{"data": _search_entry(call.store, row, logs[row[0]])} for row in rows[:limit]]
    body: dict[str, Any] = {"results": results, "summary": {"resultCount": len(results), "fieldCount": 0}}
    if details.get("isReturnFieldInfo"):
        body["fields"] = []
    return Reply(200, body, {"opc-next-page": write_page([offset + limit])} if len(rows) > limit else {})


def _search_entry(store: StateStore, row: tuple[Any, ...], log: StoredResource) -> Json:
    identifier, time, ingested, entry, source, subject, type_, data = row
    # A JSON object is an object in the service's form, and any other text a message.
    content: Any = {"message": data}
    if type_ != RUN_OUTPUT and data.startswith("{"):
        with suppress(ValueError, RecursionError):
            content = json.loads(data)
    oracle: Json = {}
    if type_ == FLOW_RECORD:
        vnic = store.get(subject)
        compartment = vnic.compartment if vnic else log.compartment
        oracle = {"vniccompartmentocid": compartment, "vnicocid": subject, "vnicsubnetocid": _subnet_of(log)}
        subject = "-"
    return {
        "datetime": int(time * 1000),
        "logContent": {
            "data": content,
            "id": entry,
            "oracle": {
                "compartmentid": log.compartment,
                "ingestedtime": http.format_rfc3339(ingested),
                "loggroupid": log.parent,
                "logid": identifier,
                "tenantid": tenancy.TENANCY,
                **oracle,
            },
            "source": source,
            "specversion": "1.0",
            "subject": subject,
            "time": http.format_rfc3339(time),
            "type": type_,
        },
    }


def _require_source(call: ApiCall, body: Json) -> Json:
    """Refuses a service log that is not the flow log of an existing subnet, and the configuration of any other log."""
    configuration = body.get("configuration") or {}
    source, place = configuration.get("source"), configuration.get("compartmentId")
    subnet = call.store.get(str(source.get("resource"))) if source else None
    # The permissions in both of these compartments have been checked already.
    if place and place not in (body["compartmentId"], subnet.compartment if subnet else None):
        raise invalid_parameter(
            "the local cloud does not support configuration.compartmentId, except the compartment of the log group or "
            "of the source's resource"
        )
    if body.get("logType") != SERVICE_LOG:
        if source:
            raise invalid_parameter("configuration is for logs of the type SERVICE only")
        return body
    if not source:
        raise invalid_parameter("configuration.source is required for a log of the type SERVICE")
    chosen = source.get("sourceType"), source.get("service"), source.get("category")
    if chosen != _FLOW_SOURCE or source.get("parameters"):
        described = "{}, service {}, category {}, without parameters".format(*_FLOW_SOURCE)
        raise invalid_parameter(f"the local cloud serves one kind of service log: {described}")
    if subnet is None or subnet.kind != "subnet" or not subnet.live:
        raise related_not_found(f"resource {source.get('resource')}")
    return body if place else {**body, "configuration": {"source": source}}


def _keep_source(resource: StoredResource, body: Json) -> Json:
    """An update does not change a log's source: OCI's provider replaces the log for that."""
    source = resource.body.get("configuration")
    if source is None and body.get("configuration"):
        raise invalid_parameter("configuration is for logs of the type SERVICE only")
    return {**body, "configuration": source} if source else body


def change_log_group(call: ApiCall) -> Reply:
    log = kinds.find_settled(LOG, call)
    target = call.details().get("targetLogGroupId")
    if not target:
        raise missing_parameter("targetLogGroupId")
    group = call.store.get(target)
    if group is None or group.kind != GROUP.name or not group.live:
        raise related_not_found(f"targetLogGroupId {target}")
    kinds.require_unique(LOG, call, log.name, "", group.id, log.id)
    body = {**log.body, "logGroupId": group.id, "compartmentId": group.compartment}
    moved = call.store.put(log, parent=group.id, compartment=group.compartment, body=body)
    # Oracle's provider accepts only this action as a successful move.
    return Reply(202, headers=add_work_request(call, "MOVE_LOG", "log", "RELATED", moved))


def _subnet_of(log: StoredResource) -> str:
    """The subnet whose flows this log records. Empty for any other log."""
    return str(((log.body.get("configuration") or {}).get("source") or {}).get("resource", ""))


def new_flow_records(document: Mapping[str, Any], recorded: RecordedFlows, moment: float) -> Iterator[tuple[str, Json]]:
    """Records of the new counts of a run's firewalls: the VNIC of each, and its data."""
    vnics = {str(node["address"]): str(node["vnic"]) for node in document["nodes"]}
    accepted = [("ACCEPT", row, int(row["connections"])) for row in (*document["flows"], *document.get("free", ()))]
    for action, row, count in (*accepted, *(("REJECT", row, int(row["packets"])) for row in document["dropped"])):
        source, target = str(row["from"]), str(row["to"])
        key = (action, row["direction"], source, target, row["port"], row["protocol"])
        # Two searches at the same time may get their counts in the wrong order.
        more = count - recorded.get(key, 0)
        recorded[key] = max(count, recorded.get(key, 0))
        if more > 0 and not any(ip_address(end).is_link_local for end in (source, target)):
            vnic = vnics.get(target if row["direction"] == "ingress" else source, "")
            number = parse_protocol(str(row["protocol"]))
            yield (
                vnic,
                {
                    "action": action,
                    "bytesOut": 0,
                    "destinationAddress": target,
                    "destinationPort": row["port"],
                    "endTime": int(moment),
                    "flowid": uuid.uuid4().hex[:8],
                    "packets": more,
                    "protocol": number,
                    "protocolName": protocol_title(number),
                    "sourceAddress": source,
                    "sourcePort": 0,
                    "startTime": int(moment),
                    "status": "OK",
                    "version": "2",
                },
            )


def logging_operations() -> list[ApiOperation]:
    change_group = f"{LOG.path}/{{logId}}/actions/changeLogGroup"
    push = "/20200831/logs/{logId}/actions/push"
    return [
        *kinds.kind_operations(GROUP),
        *kinds.kind_operations(LOG),
        ApiOperation("ChangeLogLogGroup", "POST", change_group, change_log_group, SERVICE, "ChangeLogLogGroupDetails"),
        ApiOperation("PutLogs", "POST", push, put_logs, "loggingingestion", "PutLogsDetails"),
        ApiOperation("SearchLogs", "POST", "/20190909/search", search_logs, "loggingsearch", "SearchLogsDetails"),
    ]
