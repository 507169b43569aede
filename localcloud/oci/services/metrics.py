# SPDX-License-Identifier: Apache-2.0
"""Monitoring: metrics that clients post, and those that the local cloud measures of its runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from localcloud.oci import models, tenancy
from localcloud.oci.authorization import may_see_in
from localcloud.oci.metric_query import MetricQuery, Point, parse_metric_query
from localcloud.oci.operations import ApiCall, ApiOperation
from localcloud.oci.paging import plain_page
from localcloud.oci.tenancy_store import StateStore
from localcloud.server import http
from localcloud.server.api_errors import invalid_parameter
from localcloud.server.http import Json, Reply

SERVICE = "monitoring"
VERSION = "/20180401"
_LISTED_SECONDS = 14 * 86400.0
_LOOKED_BACK_SECONDS = 3 * 3600.0
_OLDEST_SECONDS, _NEWEST_SECONDS = 2 * 3600.0, 600.0
_MOST_STREAMS, _MOST_DIMENSIONS = 50, 20
_NAMESPACE = re.compile(r"[a-z][a-z0-9_]{0,253}[a-z0-9]")
_NAME = re.compile(r"[A-Za-z][\w.$-]{0,254}")
_SERVICES_OWN = ("oci_", "oracle_")
_ORDERS = {"NAMESPACE": "namespace", "NAME": "name", "RESOURCEGROUP": "resourceGroup"}


@dataclass(frozen=True)
class MetricStream:
    """The identity of a series of points."""

    compartment: str
    namespace: str
    group: str
    name: str
    dimensions: str

    def render(self) -> Json:
        own = {"resourceGroup": self.group} if self.group else {}
        return {
            "namespace": self.namespace, "compartmentId": self.compartment, "name": self.name,
            "dimensions": json.loads(self.dimensions), **own,
        }  # fmt: skip


def dimensions_text(dimensions: Mapping[str, str]) -> str:
    """Dimensions as canonical text: equal dimensions give equal text."""
    return json.dumps(dict(sorted(dimensions.items())))


def write_points(store: StateStore, stream: MetricStream, points: Iterable[Point], metadata: Mapping[str, str]) -> None:
    """Adds points to a stream. A point replaces an older one of the same time."""
    about = (stream.compartment, stream.namespace, stream.group, stream.name, stream.dimensions)
    store.connection.executemany(
        "INSERT OR REPLACE INTO metrics (compartment, namespace, resource_group, name, dimensions, time, value, count,"
        " metadata) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(*about, *point, json.dumps(dict(metadata))) for point in points],
    )


def post_metrics(call: ApiCall) -> Reply:
    details = call.details()
    if len(details["metricData"]) > _MOST_STREAMS:
        raise invalid_parameter(
            f"metricData has {len(details['metricData'])} metric streams; a call takes at most {_MOST_STREAMS}"
        )
    failed = []
    for entry in details["metricData"]:
        if why := _refusal_reason(entry):
            failed.append({"message": why, "metricData": entry})
            continue
        dimensions = dimensions_text(entry["dimensions"])
        group = entry.get("resourceGroup", "")
        stream = MetricStream(entry["compartmentId"], entry["namespace"], group, entry["name"], dimensions)
        points = [
            (http.parse_rfc3339(point["timestamp"]), float(point["value"]), point.get("count", 1))
            for point in entry["datapoints"]
        ]
        write_points(call.store, stream, points, entry.get("metadata", {}))
    if failed and details.get("batchAtomicity") == "ATOMIC":
        raise invalid_parameter(failed[0]["message"])
    return Reply(200, {"failedMetricsCount": len(failed), "failedMetrics": failed})


def _refusal_reason(entry: Mapping[str, Any]) -> str:
    """Why the service would refuse a stream; empty if it would accept it."""
    now = http.current_moment()
    moments = [http.parse_rfc3339(point["timestamp"]) for point in entry["datapoints"]]
    reasons = {
        f"namespace {entry['namespace']!r} is not lower-case letters, digits and underscores": not _NAMESPACE.fullmatch(
            entry["namespace"]
        ),
        f"namespace {entry['namespace']!r} is Oracle's own": entry["namespace"].startswith(_SERVICES_OWN),
        f"name {entry['name']!r} is not letters, digits, and . _ - $": not _NAME.fullmatch(entry["name"]),
        f"there must be 1 to {_MOST_DIMENSIONS} dimensions": not 1 <= len(entry["dimensions"]) <= _MOST_DIMENSIONS,
        "there are no datapoints": not moments,
        "a timestamp is over 2 hours old or over 10 minutes ahead": any(
            not now - _OLDEST_SECONDS <= moment <= now + _NEWEST_SECONDS for moment in moments
        ),
        "a count is less than 1, or a value beyond what can be added up": any(
            point.get("count", 1) < 1 or abs(point["value"]) > 1e15 for point in entry["datapoints"]
        ),
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


def list_metrics(call: ApiCall) -> Reply:
    details = call.details()
    wanted = details.get("dimensionFilters", {})
    shown = []
    since = http.current_moment() - _LISTED_SECONDS
    where, values = _stream_conditions(call, details)
    rows = call.store.connection.execute(
        f"SELECT DISTINCT compartment, namespace, resource_group, name, dimensions FROM metrics WHERE {where}"
        " AND time >= ?",
        (*values, since),
    )
    for stream in (MetricStream(*row) for row in rows.fetchall()):
        metric = stream.render()
        if details.get("name", stream.name) != stream.name or not wanted.items() <= metric["dimensions"].items():
            continue
        if fields := details.get("groupBy"):
            if unknown := [name for name in fields if name not in (*_ORDERS.values(), "compartmentId", "dimensions")]:
                raise invalid_parameter(f"groupBy takes namespace, name and resourceGroup, not {unknown[0]!r}")
            metric = {name: value for name, value in metric.items() if name in (*fields, "compartmentId")}
        if metric not in shown:
            shown.append(metric)
    order = _ORDERS[details.get("sortBy", "NAMESPACE")]
    shown.sort(key=lambda metric: str(metric.get(order, "")), reverse=details.get("sortOrder") == "DESC")
    items, headers = plain_page(shown, call.query, 1000)
    return Reply(200, [models.shape_reply(SERVICE, "Metric", item) for item in items], headers)


def _stream_conditions(call: ApiCall, details: Json) -> tuple[str, list[str]]:
    compartments = [call.needed("compartmentId")]
    if call.query.get("compartmentIdInSubtree") == "true":
        if compartments != [tenancy.TENANCY]:
            raise invalid_parameter("compartmentIdInSubtree can only be true where compartmentId is the tenancy")
        rows = call.store.connection.execute("SELECT DISTINCT compartment FROM metrics").fetchall()
        compartments = [compartment for (compartment,) in rows if may_see_in(call, compartment)]
    where, values = [f"compartment IN ({', '.join('?' * len(compartments))})"], compartments
    for field, column in (("namespace", "namespace"), ("resourceGroup", "resource_group")):
        if field in details:
            where.append(f"{column} = ?")
            values.append(details[field])
    return " AND ".join(where), values


def summarize_metrics(call: ApiCall) -> Reply:
    details = call.details()
    query = parse_metric_query(details["query"])
    if details.get("resolution", query.interval) != query.interval:
        raise invalid_parameter(
            f"resolution must be the query's interval {query.interval}: the local cloud supports no other"
        )
    shown = []
    for stream, (points, metadata) in _grouped_points(call, details, query).items():
        aggregated = [
            {"timestamp": http.format_rfc3339(moment), "value": value} for moment, value in query.aggregate(points)
        ]
        more = {"metadata": metadata, "resolution": query.interval, "aggregatedDatapoints": aggregated}
        shown.append({**stream.render(), **more})
    return Reply(200, shown)


def _grouped_points(
    call: ApiCall, details: Json, query: MetricQuery
) -> dict[MetricStream, tuple[list[Point], Mapping[str, str]]]:
    """The points and the latest metadata of each stream, after the query's grouping."""
    where, values = _stream_conditions(call, details)
    end = http.parse_rfc3339(details["endTime"]) if "endTime" in details else http.current_moment()
    start = http.parse_rfc3339(details["startTime"]) if "startTime" in details else end - _LOOKED_BACK_SECONDS
    if start >= end:
        raise invalid_parameter("startTime must be before endTime")
    rows = call.store.connection.execute(
        "SELECT compartment, namespace, resource_group, name, dimensions, time, value, count, metadata FROM metrics"
        f" WHERE {where} AND name = ? AND time >= ? AND time < ? ORDER BY time",
        (*values, query.name, start, end),
    )
    groups: dict[MetricStream, tuple[list[Point], Mapping[str, str]]] = {}
    for *about, moment, value, count, text in rows:
        stream = MetricStream(*about)
        dimensions = json.loads(stream.dimensions)
        if all(condition.holds(dimensions) for condition in query.conditions):
            grouped = replace(stream, dimensions=dimensions_text(query.group_of(dimensions)))
            points, _ = groups.get(grouped, ([], {}))
            points.append((moment, value, count))
            groups[grouped] = points, json.loads(text)
    return groups


def metric_operations() -> list[ApiOperation]:
    actions = f"{VERSION}/metrics/actions"
    return [
        ApiOperation("PostMetricData", "POST", f"{VERSION}/metrics", post_metrics, SERVICE, "PostMetricDataDetails"),
        ApiOperation("ListMetrics", "POST", f"{actions}/listMetrics", list_metrics, SERVICE, "ListMetricsDetails"),
        ApiOperation(
            "SummarizeMetricsData", "POST", f"{actions}/summarizeMetricsData", summarize_metrics, SERVICE,
            "SummarizeMetricsDataDetails",
        ),
    ]  # fmt: skip
