# SPDX-License-Identifier: Apache-2.0
"""Runs tasks of the local OpenPAI on the hosts: starts and stops their attempts, and reports their states."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from catalog.openpai import UNKNOWN_FAILURE, reported_exit_code
from localcloud.hosts import evidence, node_setup
from localcloud.hosts.assignment import Assignment, Dispatcher, RunVerdict
from localcloud.hosts.fabric import NO_NODES, Fabric
from localcloud.hosts.run_hosts import Hosts
from localcloud.hosts.specification import result_path
from localcloud.openpai.hosts import runtime
from localcloud.openpai.hosts.stand_ins import InitError
from localcloud.openpai.hosts.task_assignments import build_task_assignment
from localcloud.openpai.tasks import LOST, TaskAttempt, TaskExit, TaskReports

_PREFIX = "openpai/"
# The log files of a line, by its letter. The output of the user's command is in `all`, too.
_FILES = {runtime.OUTPUT: ("stdout", "all"), runtime.ERRORS: ("stderr", "all"), runtime.RUNTIME: ("runtime.log",)}
_BY_ITSELF = "exited"
_STOPPED, _OUT_OF_MEMORY, _CANNOT_START = 143, -1200, -1204
# The beginning of the hosts' reason if a node used too much memory (localcloud/hosts/usage_watch.py, limits.py).
_MEMORY = "memory"


def task_run_id(attempt: TaskAttempt) -> str:
    """The id of a node's run (docs/decisions/0023)."""
    return f"{_PREFIX}{attempt.framework}/{attempt.role}/{attempt.index}"


def is_task_run(identifier: str) -> bool:
    return identifier.startswith(_PREFIX)


@dataclass(frozen=True)
class TaskEvidence:
    """Keeps the evidence of each task in a file. Its name is a digest, because names of jobs may be too long."""

    folder: Path

    def keep(self, task: str, attempt: Path) -> None:
        """Keeps the evidence of an ended attempt. `attempt`: its folder. Without a host, there is nothing to keep."""
        if seen := evidence.read_evidence(attempt):
            place = self._place(task)
            place.mkdir(parents=True, exist_ok=True)
            evidence.write_evidence(place, {**seen, "run": task})

    def read(self, task: str) -> Mapping[str, Any]:
        return evidence.read_evidence(self._place(task)) or evidence.build_evidence(task, NO_NODES, ())

    def _place(self, task: str) -> Path:
        return self.folder / hashlib.sha256(task.encode()).hexdigest()[:32]


_NAMES = tuple(dict.fromkeys(name for names in _FILES.values() for name in names))
# How much of a log OpenPAI's runtime searches for known errors.
_TAIL = 10 * 1024 * 1024


class TaskLogs:
    """The log files of an attempt. Only this cloud writes to the folder, so links need not be expected."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in _NAMES:
            (folder / name).touch()

    def give(self, lines: Sequence[bytes]) -> None:
        """Writes lines in the runtime's format. A line without a letter is not by the runtime, and goes into `all`."""
        parts: dict[str, list[bytes]] = {}
        for line in lines:
            names = _FILES.get(chr(line[0])) if line else None
            if names is None or line[1:2] not in (b".", b"+"):
                names, line = ("all",), b"o." + line
            end = b"" if line[1:2] == b"+" else b"\n"
            for name in names:
                parts.setdefault(name, []).append(line[2:] + end)
        for name, content in parts.items():
            with (self._folder / name).open("ab") as file:
                file.write(b"".join(content))

    def tail(self) -> bytes:
        """The end of the output of the user's command."""
        with (self._folder / "all").open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL))
            return file.read()


class ClusterTasks(Dispatcher):
    """Implements `localcloud.openpai.tasks.Tasks`, and is the dispatcher of its own hosts. An attempt never begins
    twice: after a restart of the cloud, the controller counts running ones as lost."""

    def __init__(
        self, folder: Path, fabric: Fabric, reports: TaskReports, disk_bytes: Callable[[], int] = lambda: 0
    ) -> None:
        """`disk_bytes`: the size of the disk of a task that starts, if a fault makes it small."""
        self._folder, self._disk_bytes = folder, disk_bytes
        self._hosts = Hosts(folder, fabric, self)
        self._reports = reports
        self._attempts: dict[str, TaskAttempt] = {}
        self._logs: dict[str, TaskLogs] = {}
        self._seen = TaskEvidence(folder.with_name(f"{folder.name}-seen"))
        self._stopping: set[str] = set()
        # The ends of attempts that never began.
        self._refused: dict[str, TaskExit] = {}
        self._closing = False

    async def recover(self) -> None:
        """Ends the processes of a killed cloud, and removes their files, which contain secrets."""
        if self._folder.is_dir():
            await asyncio.gather(*(node_setup.end_processes(folder) for folder in self._folder.iterdir()))
            await asyncio.to_thread(shutil.rmtree, self._folder)

    async def close(self) -> None:
        """Ends all processes, because the cloud ends."""
        self._closing = True
        await self._hosts.stop()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    # -- called by our own operations

    def has(self, machine: str) -> bool:
        return is_task_run(machine)

    async def evidence(self, machine: str) -> Mapping[str, Any]:
        """The firewall's counts of a task's last attempt."""
        living = next((one.id for one in self._attempts.values() if task_run_id(one) == machine), None)
        return await self._hosts.evidence(living) if living else self._seen.read(machine)

    # -- called by the controller

    def start(self, attempt: TaskAttempt) -> None:
        if attempt.id not in self._attempts and not self._closing:
            self._attempts[attempt.id] = attempt
            self._hosts.submit(attempt.id)

    def stop(self, attempt: str) -> None:
        if attempt in self._attempts:
            self._stopping.add(attempt)
            self._hosts.cancel(attempt)

    # -- called by the hosts (`localcloud.hosts.assignment.Dispatcher`)

    async def assignment(self, run: str, folder: Path) -> Assignment:
        attempt = self._attempts[run]
        self._logs[run] = logs = TaskLogs(attempt.logs)
        small_disk = self._disk_bytes()
        try:
            assignment = await asyncio.to_thread(build_task_assignment, attempt, folder, logs.give)
            return replace(assignment, small_disk=small_disk)
        except InitError as error:
            self._refused[run] = TaskExit(error.code, str(error))
            raise

    def started(self, run: str) -> None:
        self._reports.running(run)

    def ended(self, run: str, verdict: RunVerdict, folder: Path) -> None:
        result, logs = _read_node_result(folder), self._logs.pop(run, None)
        attempt = self._attempts.pop(run, None)
        if attempt is not None:
            self._seen.keep(task_run_id(attempt), folder)
        was_stopped = run in self._stopping
        self._stopping.discard(run)
        if not self._closing or (result is not None and result["reason"] == _BY_ITSELF):
            how = self._refused.get(run) or _determine_exit(
                result, verdict.details, folder, was_stopped, logs.tail() if logs else b""
            )
            self._reports.ended(run, how)
        self._refused.pop(run, None)
        # The logs are elsewhere, and nobody needs the disk any more.
        shutil.rmtree(folder, ignore_errors=True)


def _determine_exit(
    result: Mapping[str, Any] | None, details: str, folder: Path, was_stopped: bool, tail: bytes
) -> TaskExit:
    if result is not None:
        code, detail = result.get("code"), str(result.get("detail") or "")
        match result["reason"]:
            case "unstartable":
                return TaskExit(_CANNOT_START, f"The command could not be started: {detail}")
            case "limit":
                return TaskExit(_OUT_OF_MEMORY if _MEMORY in detail else UNKNOWN_FAILURE, detail)
        if _MEMORY in detail:
            return TaskExit(_OUT_OF_MEMORY, detail)
        code = UNKNOWN_FAILURE if code is None else 128 - code if code < 0 else int(code)
        if code == 0:
            return TaskExit(0)
        return TaskExit(reported_exit_code(code, tail), f"The command ended with code {code}")
    if was_stopped:
        return TaskExit(_STOPPED, "The task was stopped before its command began")
    began = any(folder.glob("node-*.pid"))
    return TaskExit(LOST if began else _CANNOT_START, details)


def _read_node_result(folder: Path) -> Mapping[str, Any] | None:
    path = result_path(folder, 0)
    try:
        result: Mapping[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return None
    return result
