# SPDX-License-Identifier: Apache-2.0
"""Jobs of a cluster as runs with their progress, including hostile jobs and storages."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.openpai.client.jobs import start_of_job
from components.openpai.client.storages import storage_progress_key, storages_folder
from localcloud.oci.tenancy_store import StateStore
from localcloud.openpai import accounts
from localcloud.openpai.console.platform import job_run_content, openpai_sections
from localcloud.openpai.console.shown_jobs import RunBook
from localcloud.openpai.controller import Controller
from localcloud.openpai.job_progress import ProgressObserver
from localcloud.openpai.job_store import JobRow, JobStore
from localcloud.openpai.rest import Parts
from localcloud.openpai.tokens import Tokens
from localcloud.openpai.virtual_clusters import Allocations
from localcloud.server import progress_record

ROLES = {
    "main": {"instances": 1, "commands": ["export LR=0.1; export TRAINYARD_OUTPUT=/out"]},
    "Work_er": {"instances": 2},
}
NODES = [
    {"name": "main-0", "role": "main", "rank": 0}, {"name": "Work_er-0", "role": "Work_er", "rank": 1},
    {"name": "Work_er-1", "role": "Work_er", "rank": 2},
]  # fmt: skip


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    folder = accounts.openpai_folder(tmp_path)
    folder.mkdir()
    (storages_folder(tmp_path) / "shared").mkdir(parents=True)
    store, allocations, faults = JobStore(folder / "state.sqlite3"), Allocations(lambda name: None), None
    yield Parts(tmp_path, store, Tokens(folder, store), allocations, Controller(tmp_path, store, allocations), faults)  # type: ignore[arg-type]
    store.close()


def add(parts: Parts, name: str, own: Any = None, **more: Any) -> None:
    row = JobRow(f"ann~{name}", "ann", name, name, "default", time.time(), tasks=3, roles=2, **more)
    storages = [{"name": "shared", "mountPath": "/mnt/shared"}]
    extras = {"storages": storages, **({"trainyard": own} if own else {})}
    content = {"name": name, "taskRoles": ROLES, "extras": extras}
    with parts.store.transaction():
        parts.store.add(row, json.dumps(content), {})


def ours(**more: Any) -> dict[str, Any]:
    tags = {"stack": "s\x1b[2J", "job": "cifar", "run": "base"}
    return {
        "version": 1,
        "nodes": NODES,
        "tags": tags,
        "attempt": 2,
        "folder": "file:///mnt/shared/s/cifar/base/1",
        **more,
    }


def test_our_jobs_show_nodes_and_other_jobs_show_tasks(parts: Parts) -> None:
    add(parts, "ours-01234567", ours())
    add(parts, "theirs")
    (theirs, run) = RunBook(parts).latest()
    assert (run.title, run.attempt, run.state, run.over) == ("cifar/base", 2, "ACCEPTED", False)
    assert "\x1b" not in run.stack
    assert [(one.rank, one.run.name, one.role) for one in run.nodes] == [
        (0, "main-0", "main"),
        (1, "Work_er-0", "Work_er"),
        (2, "Work_er-1", "Work_er"),
    ]
    assert run.nodes[1].machine == "openpai/ann~ours-01234567/Work_er/0"
    assert run.variables == ("LR", "TRAINYARD_OUTPUT")
    assert (theirs.title, [one.run.name for one in theirs.nodes]) == ("theirs", [one.run.name for one in run.nodes])
    assert job_run_content(parts, theirs, {}).lines == []
    titles = {section.title: [item["name"] for item in section.items] for section in openpai_sections(parts, 100)}
    assert titles == {
        "Jobs": ["ann~theirs", "ann~ours-01234567"],
        "Virtual clusters": ["default", "reserved"],
        "Storages": ["shared"],
    }


def test_ended_jobs_are_read_once(parts: Parts) -> None:
    for number in range(100):
        add(parts, f"job{number}-01234567", ours(), state="FAILED", completed=time.time(), code=1)
    book = RunBook(parts)
    assert {run.state for run in book.latest()} == {"FAILED"}
    add(parts, "new-01234567", ours())
    began = time.thread_time()
    assert (len(book.latest()), book.latest()[0].job.job) == (100, "new-01234567")
    assert time.thread_time() - began < 0.1


def test_status_files_on_storages_are_recorded_and_no_link_is_followed(parts: Parts, tmp_path: Path) -> None:
    name = "ours-01234567"
    add(parts, name, ours())
    folder = f"s/cifar/base/1/{start_of_job(name, 0)}"
    place = storages_folder(tmp_path) / "shared" / folder / "status"
    place.mkdir(parents=True)
    (tmp_path / "secret.json").write_text('{"state": "running", "progress": {"step": 7}}')
    os.symlink(tmp_path / "secret.json", place / "1.json")
    os.mkfifo(place / "2.json")
    store = StateStore(tmp_path / "state")
    observer = ProgressObserver(tmp_path, parts.store, store)
    for step in (1, 2, 2):
        (place / "0.json").write_text(json.dumps({"state": "running", "progress": {"step": step, "loss": 1 / step}}))
        observer.observe()
    with parts.store.transaction():
        parts.store.connection.execute("UPDATE jobs SET completed = 1.0, state = 'SUCCEEDED'")
    (place / "0.json").write_text('{"state": "succeeded", "progress": {"step": 3}}')
    observer.observe()
    (place / "0.json").write_text('{"state": "succeeded", "progress": {"step": 4}}')
    observer.observe()
    points = progress_record.recorded_progress(store, storage_progress_key("shared"), folder, 100)
    store.close()
    assert [(rank, [one.step for one in own]) for rank, own in points.items()] == [(0, [1, 2, 3])], "its end, too"
    (run,) = RunBook(parts).latest()
    assert {rank: status.get("state") for rank, status in job_run_content(parts, run, points).statuses.items()} == {
        0: "succeeded",
        1: None,
        2: None,
    }
