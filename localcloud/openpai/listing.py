# SPDX-License-Identifier: Apache-2.0
"""Lists of jobs: what a query asks for, as one look into the tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localcloud.openpai import views
from localcloud.openpai.errors import invalid_parameters
from localcloud.openpai.rest import number
from localcloud.openpai.store import JobStore

_MOST, _USUAL = 50_000, 5_000
# What a query may filter by: the column, and whether it names the values or their absence.
_FILTERS = {"username": "user", "vc": "cluster", "state": "state"}
_ORDERS = {
    "jobName": "job", "submissionTime": "submitted", "username": "user", "vc": "cluster", "retries": "attempt",
    "totalTaskNumber": "tasks", "totalGpuNumber": "gpus", "state": "state", "completionTime": "completed",
    "jobPriority": "priority",
}  # fmt: skip
_TAGGED = "name IN (SELECT job FROM tags WHERE tag IN ({marks}))"


def listed(store: JobStore, query: Mapping[str, str]) -> Any:
    """Summaries of jobs, with the number of all of them if the query wants it."""
    limit = number(query["limit"], "limit") if "limit" in query else _USUAL
    if limit > _MOST:
        raise invalid_parameters(f"Limit exceeds max number {_MOST}.")
    offset = number(query["offset"], "offset") if "offset" in query else 0
    where, values = _where(query)
    rows = list(store.jobs(f"{where} ORDER BY {_order(query)} LIMIT ? OFFSET ?", (*values, limit, offset)))
    tags = store.tags([row.name for row in rows])
    data = [views.summary(row, tags.get(row.name, ())) for row in rows]
    if query.get("withTotalCount") != "true":
        return data
    count = store.connection.execute(f"SELECT count(*) FROM jobs {where}", values).fetchone()[0]
    return {"totalCount": count, "data": data}


def _where(query: Mapping[str, str]) -> tuple[str, list[str]]:
    clauses: list[str] = []
    values: list[str] = []

    def add(clause: str, named: list[str]) -> None:
        clauses.append(clause.format(marks=", ".join("?" * len(named))))
        values.extend(named)

    for key, column in _FILTERS.items():
        if key in query:
            add(f"{column} IN ({{marks}})", query[key].split(","))
    if "tagsContain" in query:
        add(_TAGGED, query["tagsContain"].split(","))
    if "tagsNotContain" in query:
        add(f"NOT {_TAGGED}", query["tagsNotContain"].split(","))
    priorities = query["jobPriority"].split(",") if "jobPriority" in query else []
    if priorities and "default" not in priorities:
        add("priority IN ({marks})", priorities)
    either, words = _either(query)
    if either:
        add(f"({' OR '.join(either)})", words)
    return (f"WHERE {' AND '.join(clauses)}" if clauses else ""), values


def _either(query: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """A keyword, and jobs that name no priority: controllers/v2/job.js joins these by OR."""
    either: list[str] = []
    words: list[str] = []
    if keyword := query.get("keyword"):
        either += ["instr(user, ?)", "instr(job, ?)", "instr(cluster, ?)"]
        words += [keyword] * 3
    priorities = query.get("jobPriority", "").split(",")
    if "default" in priorities:
        others = [each for each in priorities if each != "default"]
        either += ["priority IS NULL", *["priority = ?"] * len(others)]
        words += others
    return either, words


def _order(query: Mapping[str, str]) -> str:
    """What the list is sorted by. The newest first, unless the query names an order that exists."""
    key, _, direction = query.get("order", "").partition(",")
    if key not in _ORDERS or direction not in ("ASC", "DESC"):
        return "submitted DESC, sequence DESC"
    nulls = " NULLS LAST" if direction == "ASC" else " NULLS FIRST"
    return f"{_ORDERS[key]} {direction}{nulls}, sequence DESC"
