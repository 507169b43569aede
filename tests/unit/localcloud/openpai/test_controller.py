# SPDX-License-Identifier: Apache-2.0
"""The controller of the local OpenPAI, without hosts: the placement of tasks, their variables, and a failing disk."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from localcloud.openpai import accounts, job_calls, user_calls
from localcloud.openpai.attempts import logs_folder
from localcloud.openpai.cluster import remove_unknown_logs
from localcloud.openpai.controller import Controller
from localcloud.openpai.job_store import JobRow, JobStore
from localcloud.openpai.policies import build_job_policy
from localcloud.openpai.rest import Parts, RestCall
from localcloud.openpai.tasks import LOST, TaskAttempt, TaskExit
from localcloud.openpai.tokens import Caller, Tokens
from localcloud.openpai.virtual_clusters import Allocations
from localcloud.server.api_errors import ApiError

_SECRETS = {"word": "sesame"}


class RecordingTasks:
    """`localcloud.openpai.tasks.Tasks`: records attempts, and ends none by itself."""

    def __init__(self) -> None:
        self.begun: list[TaskAttempt] = []
        self.stopped: list[str] = []

    async def recover(self) -> None: ...

    def start(self, attempt: TaskAttempt) -> None:
        self.begun.append(attempt)

    def stop(self, attempt: str) -> None:
        self.stopped.append(attempt)


class Cluster:
    """A controller with its tables. Another one in the same folder plays the cloud after a kill."""

    def __init__(self, home: Path) -> None:
        folder = accounts.openpai_folder(home)
        folder.mkdir(parents=True, exist_ok=True)
        self.store = JobStore(folder / "state.sqlite3")
        self.tasks = RecordingTasks()
        allocations = Allocations(lambda name: None)
        self.controller = Controller(home, self.store, allocations)
        self.controller.tasks = self.tasks
        faults: Any = None
        self.parts = Parts(home, self.store, Tokens(folder, self.store), allocations, self.controller, faults)
        self.controller.recover()

    def close(self) -> None:
        self.controller.close()
        self.store.close()

    def submit(self, name: str, instances: int = 1, priority: str | None = None, **more: Any) -> str:
        resources = {"cpu": 1, "memoryMB": 1, "gpu": 0, "ports": {"data": 2}}
        role = {"dockerImage": "image", "commands": ["true"], "instances": instances, "resourcePerInstance": resources}
        image = {
            "type": "dockerimage", "name": "image", "uri": "example.com/plain:1",
            "auth": {"username": "ann", "password": "<% $secrets.word %>"},
        }  # fmt: skip
        protocol = {"prerequisites": [image], "secrets": _SECRETS, "taskRoles": {"Work_er": role}, **more}
        policy = build_job_policy(protocol)
        row = JobRow(f"user~{name}", "user", name, name, "default", 1.0, tasks=policy.tasks, roles=1, priority=priority)
        with self.store.transaction():
            self.store.add(row, json.dumps({**protocol, "secrets": "******"}), protocol)
        self.controller.submitted(row.name)
        return row.name

    def call(self, *, body: Any = None, query: Mapping[str, str] | None = None, **params: str) -> RestCall:
        caller = Caller(accounts.PEOPLE[0], "", True)
        return RestCall(self.parts, params, query or {}, caller, json.dumps(body).encode())

    def state(self, name: str) -> str:
        row = self.store.job(name)
        assert row is not None
        return row.state

    def statements(self, work: Callable[[], object]) -> int:
        """The number of SQL statements that this takes."""
        seen: list[str] = []
        self.store.connection.set_trace_callback(seen.append)
        work()
        self.store.connection.set_trace_callback(None)
        return len(seen)

    @contextmanager
    def without_disk(self) -> Iterator[None]:
        """Makes every write fail."""
        reading = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_TRANSACTION)
        allowed = lambda action, *words: sqlite3.SQLITE_OK if action in reading else sqlite3.SQLITE_DENY  # noqa: E731
        self.store.connection.set_authorizer(allowed)
        try:
            yield
        finally:
            self.store.connection.set_authorizer(None)


def _on_loop(home: Path, work: Callable[[Cluster], None]) -> None:
    async def run() -> None:
        with closing(Cluster(home)) as cluster:
            work(cluster)

    asyncio.run(run())


def test_tasks_know_all_addresses_before_they_start(tmp_path: Path) -> None:
    def work(cluster: Cluster) -> None:
        cluster.submit("gang", instances=3)
        assert [(each.role, each.index, each.attempt) for each in cluster.tasks.begun] == [
            ("Work_er", 0, 0), ("Work_er", 1, 0), ("Work_er", 2, 0)
        ]  # fmt: skip
        for each in cluster.tasks.begun:
            told = each.environment
            for peer in cluster.tasks.begun:
                # The controller's own name of the role: lowercase letters and digits.
                assert told[f"PAI_HOST_IP_worker_{peer.index}"] == peer.address
                numbers = ",".join(str(number) for number in peer.ports["data"])
                assert told[f"PAI_PORT_LIST_worker_{peer.index}_data"] == numbers
            assert told["PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"] == str(each.index)
            assert told["PAI_CURRENT_TASK_ROLE_NAME"] == "Work_er"
            assert told["FC_TASKROLE_NAME"] == "worker"
            assert told["PAI_JOB_NAME"] == "user~gang"
            assert each.logs.is_dir()
        assert len({each.address for each in cluster.tasks.begun}) == 3

    _on_loop(tmp_path, work)


def test_another_attempt_has_another_address_and_other_ports(tmp_path: Path) -> None:
    def work(cluster: Cluster) -> None:
        name = cluster.submit("alone", instances=2, extras={"gangAllocation": False})
        first, second = cluster.tasks.begun
        cluster.controller.ended(first.id, TaskExit(137))
        again = cluster.tasks.begun[2]
        assert (again.index, again.attempt, again.job_attempt) == (0, 1, 0)
        assert again.address not in (first.address, second.address)
        assert again.ports != first.ports
        # A report of an attempt that has ended does nothing.
        cluster.controller.ended(first.id, TaskExit(0))
        cluster.controller.running(first.id)
        assert cluster.state(name) == "WAITING"
        # Once a task has run, the job runs, also while that task is retried.
        cluster.controller.running(again.id)
        cluster.controller.ended(again.id, TaskExit(137))
        again = cluster.tasks.begun[3]
        row = cluster.store.job(name)
        assert row is not None
        assert (row.state, row.sub_state) == ("RUNNING", "AttemptRunning")
        for each in (second, again):
            cluster.controller.ended(each.id, TaskExit(0))
        assert cluster.state(name) == "SUCCEEDED"

    _on_loop(tmp_path, work)


def test_a_batch_that_cannot_be_saved_is_undone_and_retried(tmp_path: Path) -> None:
    def work(cluster: Cluster) -> None:
        name = cluster.submit("gang", instances=2)
        first, second = cluster.tasks.begun
        cluster.controller.running(first.id)
        with cluster.without_disk():
            cluster.controller.ended(first.id, TaskExit(255))
        assert cluster.state(name) == "RUNNING"
        assert cluster.tasks.stopped == []
        cluster.controller.running(second.id)
        assert cluster.tasks.stopped == [second.id]
        cluster.controller.ended(second.id, TaskExit(143))
        assert cluster.state(name) == "FAILED"

    _on_loop(tmp_path, work)


def test_a_restarted_cloud_counts_running_tasks_as_lost(tmp_path: Path) -> None:
    def work(before: Cluster) -> None:
        name = before.submit("gang", instances=2)
        before.controller.running(before.tasks.begun[0].id)
        before.close()
        with closing(Cluster(tmp_path)) as after:
            assert [(each.job_attempt, each.index) for each in after.tasks.begun] == [(1, 0), (1, 1)]
            for each in after.tasks.begun:
                after.controller.ended(each.id, TaskExit(0))
            row = after.store.job(name)
            assert row is not None
            assert (row.state, row.attempt, row.counted) == ("SUCCEEDED", 1, 0)
            assert [each.end.code for each in after.store.attempts(name) if each.end] == [LOST, 0]

    _on_loop(tmp_path, work)


def test_the_sql_statements_of_an_event_do_not_grow_with_the_job(tmp_path: Path) -> None:
    """A change of one task takes as many SQL statements with 500 tasks as with three."""

    def work(cluster: Cluster) -> None:
        costs = []
        for count in (3, 500):
            at = len(cluster.tasks.begun)
            name = cluster.submit(f"of-{count}", instances=count)
            begun = cluster.tasks.begun[at:]
            runs = cluster.statements(lambda begun=begun: cluster.controller.running(begun[0].id))  # type: ignore[misc]
            ends = cluster.statements(lambda begun=begun: cluster.controller.ended(begun[0].id, TaskExit(0)))  # type: ignore[misc]
            looks = cluster.statements(lambda name=name: job_calls.get_job(cluster.call(job=name)))  # type: ignore[misc]
            costs.append((runs, ends, looks))
        assert costs[0] == costs[1]
        for number in range(500):
            cluster.submit(f"job-{number}")
        answers: list[Any] = []
        assert cluster.statements(lambda: answers.append(job_calls.list_jobs(cluster.call()).body)) <= 3
        assert len(answers[0]) == 502

    _on_loop(tmp_path, work)


def test_old_ended_jobs_are_pruned_with_their_logs(tmp_path: Path) -> None:
    def work(cluster: Cluster) -> None:
        living = cluster.submit("oldest")
        names = [cluster.submit(f"job-{number}") for number in range(4)]
        for each in cluster.tasks.begun[1:]:
            cluster.controller.ended(each.id, TaskExit(0))
        forgotten = cluster.store.prune(kept=2)
        assert forgotten == [each.id for each in cluster.tasks.begun[1:3]]
        assert [bool(cluster.store.job(name)) for name in (living, *names)] == [True, False, False, True, True]
        assert cluster.store.prune(kept=2) == []
        remove_unknown_logs(tmp_path, cluster.store)
        kept = {each.id for each in cluster.tasks.begun} - set(forgotten)
        assert {path.name for path in logs_folder(tmp_path).iterdir()} == kept

    _on_loop(tmp_path, work)


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        ({"extras": {"storages": [{"name": "a"}, {"name": "a"}]}}, -200, "`a` occurs 2 times"),
        ({"jobRetryCount": 1 << 31}, -1100, "jobRetryCount"),
    ],
)
def test_a_job_that_kubernetes_refuses_ends_at_once(
    more: dict[str, Any], code: int, words: str, tmp_path: Path
) -> None:
    def work(cluster: Cluster) -> None:
        name = cluster.submit("taken", **more)
        row = cluster.store.job(name)
        assert row is not None
        assert (row.state, row.code, row.attempt, cluster.tasks.begun) == ("FAILED", code, 0, [])
        answer = job_calls.get_job(cluster.call(job=name)).body
        assert words in answer["jobStatus"]["appExitDiagnostics"]
        assert answer["taskRoles"] == {}

    _on_loop(tmp_path, work)


def test_the_rest_server_answers_as_its_source_does(tmp_path: Path) -> None:
    """Where its published description says otherwise, or nothing: controllers/v2 and models/v2 of v1.8.0."""

    def work(cluster: Cluster) -> None:
        name = cluster.submit("again", jobRetryCount=2)
        for each in range(2):
            cluster.controller.ended(cluster.tasks.begun[each].id, TaskExit(1))
        attempts = job_calls.list_job_attempts(cluster.call(job=name)).body
        assert [(each["attemptIndex"], each["isLatest"]) for each in attempts] == [(2, True), (0, False), (1, False)]
        comma = cluster.call(job=name, body={"value": "a,b"})
        refused: list[tuple[Callable[[RestCall], object], RestCall, int, str]] = [
            (job_calls.get_task, cluster.call(job=name, attempt="2", role="worker", index="7"), 404, "NoJobError"),
            (user_calls.get_user, cluster.call(user="nobody"), 400, "NoUserError"),
            (job_calls.add_tag, comma, 400, "InvalidParametersError"),
            (job_calls.delete_tag, comma, 400, "InvalidParametersError"),
        ]
        for ask, call, status, code in refused:
            with pytest.raises(ApiError) as refusal:
                ask(call)
            assert (refusal.value.status, refusal.value.code) == (status, code)

    _on_loop(tmp_path, work)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"jobPriority": "prod"}, "p"),
        ({"jobPriority": "test,oppo"}, "t"),
        ({"jobPriority": "crit"}, ""),
        ({"jobPriority": "default"}, "d"),
        ({"jobPriority": "default,prod"}, "dp"),
        ({"jobPriority": "default", "keyword": "p"}, "dp"),
        ({"jobPriority": "prod", "keyword": "t"}, "p"),
        ({"jobPriority": "test", "keyword": "p"}, ""),
        ({"order": "jobPriority,ASC"}, "ptd"),
    ],
)
def test_jobs_are_listed_by_their_priority(query: Mapping[str, str], names: str, tmp_path: Path) -> None:
    def work(cluster: Cluster) -> None:
        for name, priority in (("d", None), ("p", "prod"), ("t", "test")):
            cluster.submit(name, priority=priority)
        rows = job_calls.list_jobs(cluster.call(query=query)).body
        found = "".join(row["name"] for row in rows)
        assert (found if "order" in query else "".join(sorted(found))) == names

    _on_loop(tmp_path, work)


def test_a_cloud_of_an_earlier_release_keeps_its_jobs(tmp_path: Path) -> None:
    """Its table of jobs has no priorities."""

    def work(cluster: Cluster) -> None:
        name = cluster.submit("kept")
        cluster.store.connection.execute("ALTER TABLE jobs DROP COLUMN priority")
        cluster.close()
        with closing(Cluster(tmp_path)) as after:
            row = after.store.job(name)
            assert row is not None
            assert row.priority is None
            assert after.submit("new", priority="prod")

    _on_loop(tmp_path, work)
