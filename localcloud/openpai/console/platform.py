# SPDX-License-Identifier: Apache-2.0
"""OpenPAI in the console, from the local cluster's tables, logs and storages."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from components.openpai.client.storages import storage_progress_key, storages_folder
from components.openpai.protocol.text import exit_of
from launcher.walking import Budget, regular_files
from localcloud.console.platform import (
    LINES,
    LONGEST_LINE,
    MANY,
    Item,
    PlaceNames,
    Points,
    RunContent,
    Section,
    last_output_lines,
)
from localcloud.files import open_regular_file
from localcloud.openpai.attempts import attempt_log_folder
from localcloud.openpai.cluster import OpenPaiCluster
from localcloud.openpai.console.shown_jobs import OpenPaiRun, RunBook
from localcloud.openpai.job_progress import read_rank_status
from localcloud.openpai.rest import Parts
from localcloud.openpai.storages import storage_names
from localcloud.openpai.virtual_clusters import VIRTUAL_CLUSTERS
from localcloud.server import http, progress_record
from localcloud.server.cloud import ServedCloud

_TITLES = ("Jobs", "Virtual clusters", "Storages")
_FILE = "all"  # both streams, as the task wrote them
_TAIL_BYTES = 64 * 1024


EMPTY = tuple(Section(title, ()) for title in _TITLES)
# How many files of a storage are counted, and for how long. Other clients wait meanwhile.
_ENTRIES, _SECONDS = 5_000, 0.03


class OpenPaiConsole:
    """`localcloud.console.platform.ConsolePlatform`."""

    places = PlaceNames(note="The tasks of a cluster can reach each other without rules.")

    def __init__(self, cloud: ServedCloud, parts: Parts | None) -> None:
        self._cloud, self._parts = cloud, parts
        self._book = RunBook(parts) if parts else None

    async def runs(self) -> Sequence[OpenPaiRun]:
        return self._book.latest() if self._book else ()

    async def content(self, run: OpenPaiRun, most: int) -> RunContent:
        if self._parts is None:
            return RunContent()
        points = {}
        if run.place is not None:
            storage, folder = run.place
            points = progress_record.recorded_progress(self._cloud.store, storage_progress_key(storage), folder, most)
        return job_run_content(self._parts, run, points)

    async def sections(self) -> Sequence[Section]:
        return openpai_sections(self._parts, MANY) if self._parts else EMPTY

    def facts(self) -> Sequence[tuple[str, str]]:
        return [("OpenPAI", self._cloud.endpoint)]


def make(cloud: ServedCloud) -> OpenPaiConsole:
    cluster = next((api for api in cloud.apis if isinstance(api, OpenPaiCluster)), None)
    return OpenPaiConsole(cloud, cluster.parts if cluster else None)


def openpai_sections(parts: Parts, many: int) -> Sequence[Section]:
    jobs = list(_job_items(parts, many))
    storages = list(_storage_items(parts))
    clusters = list(_cluster_items(parts)) if jobs else []
    if not jobs and not any(item["tables"] for item in storages):
        return EMPTY
    return tuple(Section(title, items) for title, items in zip(_TITLES, (jobs, clusters, storages), strict=True))


def _job_items(parts: Parts, many: int) -> Iterator[Item]:
    for job in parts.store.jobs("ORDER BY sequence DESC LIMIT ?", (many,)):
        facts = [
            ["virtual cluster", job.cluster],
            ["submitted", http.format_rfc3339(job.submitted)],
            ["tasks", f"{job.tasks} in {job.roles} roles, {job.gpus} GPUs"],
            ["retries", f"{job.attempt}, {job.counted} of them counted"],
        ]
        facts += [] if job.code is None else [["exit code", str(job.code)]]
        yield {"name": job.name, "state": job.state, "facts": facts}


def _cluster_items(parts: Parts) -> Iterator[Item]:
    for row in VIRTUAL_CLUSTERS:
        used, total = parts.allocations.used(row.name), parts.allocations.total(row)
        rows = [
            [what, str(getattr(used, key)), str(getattr(total, key))]
            for key, what in (("gpu", "GPUs"), ("cpu", "CPUs"), ("memory", "memory (MB)"), ("pod", "tasks"))
        ]
        tables = [{"columns": ["what", "used", "of"], "rows": rows}]
        yield {"name": row.name, "state": f"{used.pod} tasks", "tables": tables}


def _storage_items(parts: Parts) -> Iterator[Item]:
    for name in storage_names(parts.home)[:MANY]:
        folder = storages_folder(parts.home) / name
        budget = Budget(_ENTRIES, _SECONDS)
        files = sorted(regular_files(str(folder), lambda name, status, opened: True, budget))
        rows = [
            [path.encode(errors="replace").decode(), str(stat.st_size), http.format_rfc3339(max(0.0, stat.st_mtime))]
            for path, stat in files[:MANY]
        ]
        least = "at least " if budget.cut else ""
        yield {
            "name": name,
            "state": f"{least}{len(files)} files, {least}{sum(stat.st_size for _, stat in files)} bytes",
            "facts": [["folder", str(folder)]],
            "tables": [{"columns": ["file", "bytes", "modified"], "rows": rows}] if rows else [],
        }


def job_run_content(parts: Parts, run: OpenPaiRun, points: Points) -> RunContent:
    statuses = (
        {node.rank: read_rank_status(parts.home, run.place, node.rank) for node in run.nodes} if run.place else {}
    )
    job = run.job
    facts = [["job", job.name], ["virtual cluster", job.cluster], ["submitted", http.format_rfc3339(job.submitted)]]
    for attempt in parts.store.attempts(job.name)[-LINES:]:
        end = attempt.end
        words = (
            f"ended with {exit_of(end.code).text}; {end.trigger or end.details}"[:LONGEST_LINE] if end else "goes on"
        )
        facts.append([f"attempt {attempt.number + 1}", f"{http.format_rfc3339(attempt.started)} {words}"])
    return RunContent(facts, statuses, points, list(_last_printed_lines(parts, run)))


def _last_printed_lines(parts: Parts, run: OpenPaiRun) -> Iterator[str]:
    """The last lines, rank by rank, because logs of OpenPAI have no times."""
    written = [node for node in run.nodes if run.logs.get(node.rank)][:LINES]
    for node in written:
        mark = f"[{node.run.name}] "
        entries = ((node.rank, line.removeprefix(mark)) for line in _attempt_log_tail(parts, run.logs[node.rank]))
        yield from last_output_lines(run, entries)[-max(1, LINES // len(written)) :]


def _attempt_log_tail(parts: Parts, attempt: str) -> list[str]:
    try:
        with open_regular_file(attempt_log_folder(parts.home, attempt) / _FILE) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            lines = file.read(_TAIL_BYTES).decode("utf-8", "replace").removesuffix("\n").split("\n")
    except OSError:
        return []
    # The first line may be incomplete.
    return lines[1:] if size > _TAIL_BYTES else lines
