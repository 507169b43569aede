# SPDX-License-Identifier: Apache-2.0
"""The console's grouping of job runs to training runs."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.oci.client import job_runs
from components.platform.runs import LAUNCH_VARIABLE
from localcloud.oci.console.training_runs import RunBook
from localcloud.oci.tenancy_store import StateStore, StoredResource


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StateStore]:
    opened = StateStore(tmp_path / "state")
    yield opened
    opened.close()


def add(store: StateStore, run: str, rank: int, main: str = "", state: str = "SUCCEEDED", **launch: Any) -> str:
    identifier = f"ocid1.datasciencejobrun.oc1.iad.{run.replace('/', '')}{rank:012d}"
    document = {"role": "worker", "folder": f"oci://b@n/{run}/1", "attempt": 1, "padding": "x" * 2000, **launch}
    variables = {LAUNCH_VARIABLE: json.dumps(document), **({job_runs.MAIN_VARIABLE: main} if main else {})}
    job, name = run.split("/")
    tags = {"stack": "s", "job": job, "run": name, job_runs.RUN_TAG: run, job_runs.NODE_TAG: f"{rank}/worker/w-{rank}"}
    body = {
        "id": identifier, "jobId": "job", "freeformTags": tags,
        "jobConfigurationOverrideDetails": {"environmentVariables": variables},
    }  # fmt: skip
    with store.transaction():
        store.add(StoredResource(identifier, "job-run", "c", f"n-{rank}", state, body, parent="job"))
    return identifier


def test_the_job_runs_of_a_start_are_one_run(store: StateStore) -> None:
    for run in ("j/first", "j/second"):
        main = add(store, run, 0)
        add(store, run, 2, main, "FAILED")
        add(store, run, 1, main)
    second, first = asyncio.run(RunBook(store).latest())
    assert (second.title, first.title, first.state, first.attempt) == ("j/second", "j/first", "FAILED", 1)
    assert [(node.rank, node.role, node.run.name) for node in first.nodes] == [
        (0, "worker", "w-0"), (1, "worker", "w-1"), (2, "worker", "w-2"),
    ]  # fmt: skip
    assert first.place is not None
    assert first.place.prefix == f"j/first/1/{first.key[-12:]}"
    assert first.variables == ("MAIN_JOB_RUN_OCID", "TRAINYARD_LAUNCH")


def test_node_groups_are_shown_by_node_and_foreign_runs_by_their_names(store: StateStore) -> None:
    roles = [{"name": "main", "replicas": 1}, {"name": "worker", "replicas": 10**9}]
    documents = [json.dumps({"role": role, "roles": roles}) for role in ("main", "worker")]
    groups = [{"jobConfigurationDetails": {"environmentVariables": {"TRAINYARD_LAUNCH": one}}} for one in documents]
    layout = {"jobNodeConfigurationOverrideDetails": {"jobNodeGroupConfigurationDetailsList": groups}}
    unread = {"environmentVariables": {"TRAINYARD_LAUNCH": "["}}
    strange = {"freeformTags": {"job": "x"}, "jobConfigurationOverrideDetails": unread}
    for name, body in (("groups", layout), ("stranger", strange)):
        store.add(StoredResource(f"ocid1.x.{name}", "job-run", "c", name, "IN_PROGRESS", body, parent="job"))
    stranger, grouped = asyncio.run(RunBook(store).latest())
    assert [node.run.name for node in grouped.nodes[:3]] == ["main-0", "worker-0", "worker-1"]
    assert len(grouped.nodes) == 256
    assert (stranger.title, len(stranger.nodes), stranger.over) == ("stranger", 1, False)


def test_a_hundred_runs_of_eight_ranks_are_read_quickly(store: StateStore) -> None:
    for number in range(100):
        main = add(store, f"j/r{number}", 0)
        for rank in range(1, 8):
            add(store, f"j/r{number}", rank, main)
    book = RunBook(store)
    assert len(asyncio.run(book.latest())) == 100
    changed = add(store, "j/new", 0)
    began = time.thread_time()
    runs = asyncio.run(book.latest())
    took = time.thread_time() - began
    assert (runs[0].key, len(runs), len(runs[1].nodes)) == (changed, 100, 8)
    assert took < 0.1, "unchanged job runs are not parsed again"
