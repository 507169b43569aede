# SPDX-License-Identifier: Apache-2.0
"""The tenancy as sections of facts, tables and text. It shows only the names of environment variables: some values are
secrets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from localcloud.api import clock, marker
from localcloud.api.operations import LocalCloud
from localcloud.api.store import StateStore, StoredResource
from localcloud.console.calls import last_calls
from localcloud.console.network import network

Section = dict[str, Any]
MANY = 100
LINES = 40


def snapshot(cloud: LocalCloud) -> dict[str, Any]:
    """Everything that the page shows. The length of each part is bounded."""
    facts = marker.marker(cloud)
    return {
        "facts": [[name, facts[name]] for name in ("region", "tenancy", "compartment", "namespace", "home", "version")],
        "sections": [
            {"title": "Network", "empty": "No network.", "items": list(network(cloud.store, MANY))},
            {"title": "Who may do what", "empty": "No policies.", "items": list(_access(cloud.store))},
            {"title": "Buckets", "empty": "No buckets.", "items": list(_buckets(cloud.store))},
            {"title": "Jobs", "empty": "No jobs.", "items": list(_jobs(cloud.store))},
            {"title": "Runs", "empty": "No runs.", "items": list(_runs(cloud.store))},
            {"title": "Last calls", "empty": "No calls.", "items": [last_calls(cloud.home)]},
        ],
    }


def _latest(store: StateStore, kind: str) -> list[StoredResource]:
    return store.select("kind = ? AND live ORDER BY sequence DESC LIMIT ?", (kind, MANY))


def _place(store: StateStore, resource: StoredResource) -> str:
    compartment = store.get(resource.compartment)
    return compartment.name if compartment else resource.compartment


def _access(store: StateStore) -> Iterator[Section]:
    for policy in _latest(store, "policy"):
        statements = [[statement] for statement in policy.body["statements"]]
        tables = [{"columns": ["statement"], "rows": statements}]
        yield {"name": policy.name, "state": f"policy in {_place(store, policy)}", "tables": tables, "open": True}
    for group in _latest(store, "dynamic-group"):
        yield {"name": group.name, "state": "dynamic group", "text": [group.body["matchingRule"]]}


def _buckets(store: StateStore) -> Iterator[Section]:
    for bucket in _latest(store, "bucket"):
        count, size = store.connection.execute(
            "SELECT count(*), coalesce(sum(size), 0) FROM objects WHERE bucket = ?", (bucket.id,)
        ).fetchone()
        objects = store.connection.execute(
            "SELECT name, size, modified FROM objects WHERE bucket = ? ORDER BY name LIMIT ?", (bucket.id, MANY)
        )
        rows = [[name, str(size_of), clock.rfc3339(modified)] for name, size_of, modified in objects]
        yield {
            "name": bucket.name,
            "state": f"{count} objects, {size} bytes",
            "facts": [["compartment", _place(store, bucket)], ["id", bucket.id]],
            "tables": [{"columns": ["object", "bytes", "modified"], "rows": rows}] if rows else [],
        }


def _jobs(store: StateStore) -> Iterator[Section]:
    for job in _latest(store, "job"):
        infrastructure = job.body.get("jobInfrastructureConfigurationDetails") or {}
        configuration = job.body.get("jobConfigurationDetails") or {}
        environment = job.body.get("jobEnvironmentConfigurationDetails") or {}
        yield {
            "name": job.name,
            "state": job.shown_state,
            "facts": [
                ["id", job.id],
                ["shape", infrastructure.get("shapeName") or ""],
                ["subnet", infrastructure.get("subnetId") or "none (the service's own network)"],
                ["image", environment.get("image") or "none"],
                ["variables", ", ".join(sorted(configuration.get("environmentVariables") or {}))],
            ],
        }


def _runs(store: StateStore) -> Iterator[Section]:
    for run in _latest(store, "job-run"):
        job = store.get(str(run.body.get("jobId")))
        yield {
            "name": run.name,
            "state": run.shown_state,
            "facts": [
                ["id", run.id],
                ["job", job.name if job else str(run.body.get("jobId"))],
                ["details", str(run.body.get("lifecycleDetails") or "")],
                *([name, str(run.body[field])] for name, field in _TIMES if run.body.get(field)),
            ],
            "text": _printed(store, run),
        }


_TIMES = (("accepted", "timeAccepted"), ("started", "timeStarted"), ("finished", "timeFinished"))


def _printed(store: StateStore, run: StoredResource) -> list[str]:
    log = (run.body.get("logDetails") or {}).get("logId")
    rows = store.connection.execute(
        "SELECT data FROM log_lines WHERE log = ? AND source = ? ORDER BY time DESC, sequence DESC LIMIT ?",
        (log, run.id, LINES),
    ).fetchall()
    return [str(data) for (data,) in reversed(rows)]
