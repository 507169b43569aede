# SPDX-License-Identifier: Apache-2.0
"""Logging: log groups, logs, and their lines. A write is answered with 202, a work request and an empty body."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from localcloud.oci import kinds, ocids, tenancy
from localcloud.oci.errors import not_found
from localcloud.oci.kinds import ResourceKind, WorkRequestNames
from localcloud.oci.log_query import LogQuery, parse
from localcloud.oci.ocids import RUN_ACTIVE
from localcloud.oci.operations import ApiCall, ApiOperation, OciCloud
from localcloud.oci.paging import limit_of, read_page, write_page
from localcloud.oci.services import flow_logs
from localcloud.oci.store import StateStore, StoredResource
from localcloud.server import http
from localcloud.server.errors import invalid
from localcloud.server.http import Json, Reply

SERVICE = "logging"
VERSION = "/20200531"
# The type of a run's output lines. They are always text, even if they look like JSON.
RUN_OUTPUT = "com.oraclecloud.datascience.jobrun.stdout"
_CHANGES = frozenset({"Create", "Update", "Delete", "Move"})


def _enabled_state(body: Json) -> Json:
    return {**body, "lifecycleState": "ACTIVE" if body.get("isEnabled", True) else "INACTIVE"}


def _forget_lines(call: ApiCall, log: StoredResource) -> None:
    call.store.connection.execute("DELETE FROM log_lines WHERE log = ?", (log.id,))


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
    on_create=lambda call, body: _enabled_state(flow_logs.require_source(call, body)),
    on_update=lambda call, resource, body: _enabled_state(flow_logs.keep_source(resource, body)),
    on_delete=_forget_lines,
)  # fmt: skip


def write_lines(
    store: StateStore, log: str, source: str, subject: str, type_: str, lines: Iterable[tuple[float, str, str]]
) -> None:
    """Appends (time, id, text) to a log."""
    moment = http.now()
    store.connection.executemany(
        "INSERT INTO log_lines (log, time, ingested, id, source, subject, type, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [(log, time, moment, identifier, source, subject, type_, text) for time, identifier, text in lines],
    )


def record_flows(cloud: OciCloud, run: StoredResource, document: Mapping[str, Any]) -> None:
    """Appends the new counts of a run's firewalls to the flow logs of its subnet."""
    moment = http.now()
    records = list(flow_logs.new_records(document, cloud.recorded_flows.setdefault(run.id, {}), moment))
    for log in flow_logs.logs_of_subnet(cloud.store, str(run.body.get("subnet", ""))):
        for vnic, data in records:
            line = (moment, uuid.uuid4().hex[:8], json.dumps(data))
            write_lines(cloud.store, log.id, "-", vnic, flow_logs.RECORD, [line])


def _put_logs(call: ApiCall) -> Reply:
    log = call.store.get(call.params["logId"])
    if log is None or log.kind != LOG.name or not log.live:
        raise not_found("log")
    if log.body.get("logType") == flow_logs.SERVICE_LOG:
        raise invalid("only the service itself writes to a log of the type SERVICE")
    for batch in call.details().get("logEntryBatches", []):
        default = http.parse_rfc3339(batch["defaultlogentrytime"]) if "defaultlogentrytime" in batch else http.now()
        lines = [
            (
                http.parse_rfc3339(entry["time"]) if "time" in entry else default,
                entry.get("id") or str(uuid.uuid4()),
                entry.get("data", ""),
            )
            for entry in batch.get("entries", [])
        ]
        write_lines(call.store, log.id, batch.get("source", ""), batch.get("subject", ""), batch.get("type", ""), lines)
    return Reply(200)


def _search(call: ApiCall) -> Reply:
    """Answers at once. A search of flow logs first reads the counts of the running nodes."""
    details = call.details()
    query = parse(details["searchQuery"])
    logs = _logs_in_scope(call.store, query)
    subnets = {subnet for log in logs.values() if (subnet := flow_logs.subnet_of(log))}
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
    page = call.query.get("page")
    offset = _offset(page) if page else 0
    rows = _select_lines(call.store, query, logs, details, limit + 1, offset)
    results = [{"data": _entry(call.store, row, logs[row[0]])} for row in rows[:limit]]
    body: dict[str, Any] = {"results": results, "summary": {"resultCount": len(results), "fieldCount": 0}}
    if details.get("isReturnFieldInfo"):
        body["fields"] = []
    return Reply(200, body, {"opc-next-page": write_page([offset + limit])} if len(rows) > limit else {})


def _offset(page: str) -> int:
    (position,) = read_page(page, 1)
    if not isinstance(position, int) or position < 0:
        raise invalid("page is not a page token of this cloud")
    return position


def _logs_in_scope(store: StateStore, query: LogQuery) -> dict[str, StoredResource]:
    logs: dict[str, StoredResource] = {}
    for scope in query.scopes:
        compartment, group, log = (*scope, "", "")[:3]
        for candidate in store.live(LOG.name):
            parent = store.get(candidate.parent)
            if parent is None or compartment not in (parent.compartment, tenancy.TENANCY):
                continue
            if group in ("", parent.id, parent.name) and log in ("", candidate.id, candidate.name):
                logs[candidate.id] = candidate
    return logs


def _select_lines(
    store: StateStore, query: LogQuery, logs: Iterable[str], details: Json, limit: int, offset: int
) -> list[tuple[Any, ...]]:
    identifiers = list(logs)
    where, values = query.where
    start, end = http.parse_rfc3339(details["timeStart"]), http.parse_rfc3339(details["timeEnd"])
    return store.connection.execute(
        "SELECT log, time, ingested, id, source, subject, type, data FROM log_lines"
        f" WHERE log IN ({', '.join('?' * len(identifiers))}) AND time BETWEEN ? AND ? AND {where}"
        f" ORDER BY time {query.order}, sequence {query.order} LIMIT ? OFFSET ?",
        [*identifiers, start, end, *values, limit, offset],
    ).fetchall()


def _entry(store: StateStore, row: tuple[Any, ...], log: StoredResource) -> Json:
    identifier, time, ingested, entry, source, subject, type_, data = row
    oracle: Json = {}
    if type_ == flow_logs.RECORD:
        oracle, subject = flow_logs.oracle_of(store, log, subject), "-"
    return {
        "datetime": int(time * 1000),
        "logContent": {
            "data": {"message": data} if type_ == RUN_OUTPUT else _data(data),
            "id": entry,
            "oracle": {
                "compartmentid": log.compartment,
                "ingestedtime": http.rfc3339(ingested),
                "loggroupid": log.parent,
                "logid": identifier,
                "tenantid": tenancy.TENANCY,
                **oracle,
            },
            "source": source,
            "specversion": "1.0",
            "subject": subject,
            "time": http.rfc3339(time),
            "type": type_,
        },
    }


def _data(text: str) -> Any:
    """An entry in the service's form: a JSON object as an object, any other text as a message."""
    if text.startswith("{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
    return {"message": text}


def operations() -> list[ApiOperation]:
    line_operations = (
        ApiOperation(
            "PutLogs", "POST", "/20200831/logs/{logId}/actions/push", _put_logs, "loggingingestion", "PutLogsDetails"
        ),
        ApiOperation("SearchLogs", "POST", "/20190909/search", _search, "loggingsearch", "SearchLogsDetails"),
    )
    return [*kinds.operations(GROUP), *kinds.operations(LOG), *line_operations]
