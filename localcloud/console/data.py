# SPDX-License-Identifier: Apache-2.0
"""The tenancy as sections of facts, tables and text. It shows only the names of environment variables: some values are
secrets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from typing import Any

from localcloud.api import clock, marker
from localcloud.api.operations import LocalCloud
from localcloud.api.store import StateStore, StoredResource
from localcloud.console.calls import last_calls
from localcloud.console.network import network, unused_defaults
from localcloud.console.runs import TrainingRun

Section = dict[str, Any]
MANY = 100
# Objects of a bucket are counted up to here.
COUNTED = 10_000


def snapshot(cloud: LocalCloud, runs: list[TrainingRun], have: Collection[str]) -> dict[str, Any]:
    """Everything that the page shows, but for the details of runs. The length of each part is bounded.

    Sections whose tag the page has come without their content.
    """
    facts = marker.marker(cloud)
    sections: list[Section] = [
        {"title": "Runs", "empty": "No runs.", "runs": [_run(run) for run in runs]},
        {"title": "Networks", "empty": "No network.", "items": list(network(cloud.store, MANY))},
        {"title": "Who may do what", "empty": "No policies.", "items": list(_access(cloud.store))},
        {"title": "Buckets", "empty": "No buckets.", "items": list(_buckets(cloud.store))},
        {"title": "Jobs", "empty": "No jobs.", "items": list(_jobs(cloud.store))},
        {"title": "Last calls", "empty": "No calls.", "items": [last_calls(cloud.home)]},
        {"title": "Defaults that no subnet uses", "items": list(unused_defaults(cloud.store, MANY))},
    ]
    return {
        "facts": [[name, facts[name]] for name in ("region", "tenancy", "compartment", "namespace", "home", "version")],
        "sections": [_tagged(section, have) for section in sections],
    }


def tag_of(content: Any) -> str:
    return hashlib.blake2s(json.dumps(content).encode(), digest_size=9).hexdigest()


def _tagged(section: Section, have: Collection[str]) -> Section:
    tag = tag_of(section)
    return {"title": section["title"], "tag": tag} if tag in have else {**section, "tag": tag}


def _run(run: TrainingRun) -> Section:
    states: dict[str, int] = {}
    for node in run.nodes:
        states[node.run.state] = states.get(node.run.state, 0) + 1
    return {
        "key": run.key,
        "title": run.title,
        "stack": run.stack,
        "attempt": run.attempt,
        "state": run.state,
        "over": run.over,
        "accepted": clock.rfc3339(run.created),
        "nodes": len(run.nodes),
        "states": states,
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
        yield {"name": policy.name, "state": f"policy in {_place(store, policy)}", "tables": tables}
    for group in _latest(store, "dynamic-group"):
        yield {"name": group.name, "state": "dynamic group", "text": [group.body["matchingRule"]]}


def _buckets(store: StateStore) -> Iterator[Section]:
    for bucket in _latest(store, "bucket"):
        count, size = store.connection.execute(
            "SELECT count(*), coalesce(sum(size), 0) FROM (SELECT size FROM objects WHERE bucket = ? LIMIT ?)",
            (bucket.id, COUNTED),
        ).fetchone()
        least = "at least " if count == COUNTED else ""
        objects = store.connection.execute(
            "SELECT name, size, modified FROM objects WHERE bucket = ? ORDER BY name LIMIT ?", (bucket.id, MANY)
        )
        rows = [[name, str(size_of), clock.rfc3339(modified)] for name, size_of, modified in objects]
        yield {
            "name": bucket.name,
            "state": f"{least}{count} objects, {least}{size} bytes",
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
