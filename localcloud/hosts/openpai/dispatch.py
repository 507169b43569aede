# SPDX-License-Identifier: Apache-2.0
"""Tasks of the local OpenPAI on the hosts: starts and stops their attempts, and reports how they go."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from localcloud.hosts import former
from localcloud.hosts.assignment import Assignment, Outline, RunVerdict
from localcloud.hosts.fabric import Fabric
from localcloud.hosts.openpai.assignments import assignment_of
from localcloud.hosts.openpai.evidence import TaskEvidence, is_task, task_of
from localcloud.hosts.openpai.exits import InitError, cannot_start, lost, stopped, task_exit
from localcloud.hosts.openpai.logs import TaskLogs
from localcloud.hosts.runs import Hosts
from localcloud.hosts.specification import result_path
from localcloud.openpai.tasks import TaskAttempt, TaskExit, TaskReports

_BY_ITSELF = "exited"


class ClusterTasks:
    """`localcloud.openpai.tasks.Tasks`, and the dispatcher of its own hosts. An attempt never begins twice: the
    controller takes those of a cloud that ended for lost."""

    def __init__(self, folder: Path, fabric: Fabric, reports: TaskReports) -> None:
        self._folder = folder
        self._hosts = Hosts(folder, fabric, self)
        self._reports = reports
        self._attempts: dict[str, TaskAttempt] = {}
        self._logs: dict[str, TaskLogs] = {}
        self._seen = TaskEvidence(folder.with_name(f"{folder.name}-seen"))
        self._asked: set[str] = set()
        # How attempts ended that never began.
        self._refused: dict[str, TaskExit] = {}
        self._closing = False

    async def recover(self) -> None:
        """Ends what a killed cloud has left, and removes it: there are secrets in it."""
        if self._folder.is_dir():
            await asyncio.gather(*(former.end(folder) for folder in self._folder.iterdir()))
            await asyncio.to_thread(shutil.rmtree, self._folder)

    async def close(self) -> None:
        """Ends every process, because the cloud ends."""
        self._closing = True
        await self._hosts.stop()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    # What our own operations ask.

    def has(self, machine: str) -> bool:
        return is_task(machine)

    async def evidence(self, machine: str) -> Mapping[str, Any]:
        """What the firewall of a task's last attempt counted."""
        living = next((one.id for one in self._attempts.values() if task_of(one) == machine), None)
        return await self._hosts.evidence(living) if living else self._seen.read(machine)

    # What the controller calls.

    def start(self, attempt: TaskAttempt) -> None:
        if attempt.id not in self._attempts and not self._closing:
            self._attempts[attempt.id] = attempt
            self._hosts.submit(attempt.id)

    def stop(self, attempt: str) -> None:
        if attempt in self._attempts:
            self._asked.add(attempt)
            self._hosts.cancel(attempt)

    # What the hosts ask and say (`localcloud.hosts.assignment.Dispatcher`).

    def unfinished(self) -> Iterator[tuple[str, bool]]:
        return iter(())

    def outline(self, run: str) -> Outline | None:
        return None

    async def assignment(self, run: str, folder: Path) -> Assignment:
        attempt = self._attempts[run]
        self._logs[run] = logs = TaskLogs(attempt.logs)
        try:
            return await asyncio.to_thread(assignment_of, attempt, folder, logs.give)
        except InitError as error:
            self._refused[run] = TaskExit(error.code, str(error))
            raise

    def begins_again(self, run: str) -> None: ...

    def started(self, run: str) -> None:
        self._reports.running(run)

    def ended(self, run: str, verdict: RunVerdict, folder: Path) -> None:
        result, logs = _result(folder), self._logs.pop(run, None)
        attempt = self._attempts.pop(run, None)
        if attempt is not None:
            self._seen.keep(task_of(attempt), folder)
        asked = run in self._asked
        self._asked.discard(run)
        if not self._closing or (result is not None and result["reason"] == _BY_ITSELF):
            how = self._refused.get(run) or _exit(result, verdict.details, folder, asked, logs.tail() if logs else b"")
            self._reports.ended(run, how)
        self._refused.pop(run, None)
        # Its logs are elsewhere, and its disk went with its host.
        shutil.rmtree(folder, ignore_errors=True)


def _exit(result: Mapping[str, Any] | None, details: str, folder: Path, asked: bool, tail: bytes) -> TaskExit:
    if result is not None:
        return task_exit(result, tail)
    if asked:
        return stopped()
    began = any(folder.glob("node-*.pid"))
    return lost(details) if began else cannot_start(details)


def _result(folder: Path) -> Mapping[str, Any] | None:
    path = result_path(folder, 0)
    try:
        result: Mapping[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return None
    return result
