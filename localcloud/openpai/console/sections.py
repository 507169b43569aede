# SPDX-License-Identifier: Apache-2.0
"""What a cluster has beside its runs: virtual clusters, storages, jobs. Nothing of a cluster that nobody used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from components.openpai.client.status import storages_folder
from launcher.walking import Budget, regular_files
from localcloud.console.platform import MANY, Item, Section
from localcloud.openpai.accounts import VIRTUAL_CLUSTERS
from localcloud.openpai.rest import Parts
from localcloud.openpai.storages import storage_names
from localcloud.server import http

_TITLES = ("Jobs", "Virtual clusters", "Storages")
EMPTY = tuple(Section(title, ()) for title in _TITLES)
# Tasks fill storages, and other clients wait meanwhile.
_ENTRIES, _SECONDS = 5_000, 0.03


def sections(parts: Parts, many: int) -> Sequence[Section]:
    jobs = list(_jobs(parts, many))
    storages = list(_storages(parts))
    clusters = list(_clusters(parts)) if jobs else []
    if not jobs and not any(item["tables"] for item in storages):
        return EMPTY
    return tuple(Section(title, items) for title, items in zip(_TITLES, (jobs, clusters, storages), strict=True))


def _jobs(parts: Parts, many: int) -> Iterator[Item]:
    for job in parts.store.jobs("ORDER BY sequence DESC LIMIT ?", (many,)):
        facts = [
            ["virtual cluster", job.cluster],
            ["submitted", http.rfc3339(job.submitted)],
            ["tasks", f"{job.tasks} in {job.roles} roles, {job.gpus} GPUs"],
            ["retries", f"{job.attempt}, {job.counted} of them counted"],
        ]
        facts += [] if job.code is None else [["exit code", str(job.code)]]
        yield {"name": job.name, "state": job.state, "facts": facts}


def _clusters(parts: Parts) -> Iterator[Item]:
    for row in VIRTUAL_CLUSTERS:
        used, total = parts.places.used(row.name), parts.places.total(row)
        rows = [
            [what, str(getattr(used, key)), str(getattr(total, key))]
            for key, what in (("gpu", "GPUs"), ("cpu", "CPUs"), ("memory", "memory (MB)"), ("pod", "tasks"))
        ]
        tables = [{"columns": ["what", "used", "of"], "rows": rows}]
        yield {"name": row.name, "state": f"{used.pod} tasks", "tables": tables}


def _storages(parts: Parts) -> Iterator[Item]:
    for name in storage_names(parts.home)[:MANY]:
        folder = storages_folder(parts.home) / name
        rows, count, size, is_cut = _files(folder)
        least = "at least " if is_cut else ""
        yield {
            "name": name,
            "state": f"{least}{count} files, {least}{size} bytes",
            "facts": [["folder", str(folder)]],
            "tables": [{"columns": ["file", "bytes", "modified"], "rows": rows}] if rows else [],
        }


def _files(folder: Path) -> tuple[list[list[str]], int, int, bool]:
    budget = Budget(_ENTRIES, _SECONDS)
    files = sorted(regular_files(str(folder), lambda name, status, opened: True, budget))
    rows = [
        [name.encode(errors="replace").decode(), str(status.st_size), http.rfc3339(max(0.0, status.st_mtime))]
        for name, status in files[:MANY]
    ]
    return rows, len(files), sum(status.st_size for _, status in files), budget.cut
