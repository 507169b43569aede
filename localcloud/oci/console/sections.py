# SPDX-License-Identifier: Apache-2.0
"""What an OCI tenancy has beside its runs and networks."""

from __future__ import annotations

from collections.abc import Iterator

from localcloud.console.platform import MANY, Item
from localcloud.server import http
from localcloud.server.store import StateStore, StoredResource

# Objects of a bucket are counted up to here.
_COUNTED = 10_000


def _latest(store: StateStore, kind: str) -> list[StoredResource]:
    return store.select("kind = ? AND live ORDER BY sequence DESC LIMIT ?", (kind, MANY))


def _place(store: StateStore, resource: StoredResource) -> str:
    compartment = store.get(resource.compartment)
    return compartment.name if compartment else resource.compartment


def access(store: StateStore) -> Iterator[Item]:
    for policy in _latest(store, "policy"):
        statements = [[statement] for statement in policy.body["statements"]]
        tables = [{"columns": ["statement"], "rows": statements}]
        yield {"name": policy.name, "state": f"policy in {_place(store, policy)}", "tables": tables}
    for group in _latest(store, "dynamic-group"):
        yield {"name": group.name, "state": "dynamic group", "text": [group.body["matchingRule"]]}


def buckets(store: StateStore) -> Iterator[Item]:
    for bucket in _latest(store, "bucket"):
        count, size = store.connection.execute(
            "SELECT count(*), coalesce(sum(size), 0) FROM (SELECT size FROM objects WHERE bucket = ? LIMIT ?)",
            (bucket.id, _COUNTED),
        ).fetchone()
        least = "at least " if count == _COUNTED else ""
        objects = store.connection.execute(
            "SELECT name, size, modified FROM objects WHERE bucket = ? ORDER BY name LIMIT ?", (bucket.id, MANY)
        )
        rows = [[name, str(size_of), http.rfc3339(modified)] for name, size_of, modified in objects]
        yield {
            "name": bucket.name,
            "state": f"{least}{count} objects, {least}{size} bytes",
            "facts": [["compartment", _place(store, bucket)], ["id", bucket.id]],
            "tables": [{"columns": ["object", "bytes", "modified"], "rows": rows}] if rows else [],
        }


def jobs(store: StateStore) -> Iterator[Item]:
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
                ["compute target", infrastructure.get("computeTargetId") or "none"],
                ["subnet", infrastructure.get("subnetId") or "none (the service's own network)"],
                ["image", environment.get("image") or "none"],
                ["variables", ", ".join(sorted(configuration.get("environmentVariables") or {}))],
            ],
        }
