# SPDX-License-Identifier: Apache-2.0
"""Makes task attempts for the hosts from a job: each with its command, variables, image and storages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from components.openpai.protocol import entrypoint, with_secrets
from localcloud.openpai import accounts, environment
from localcloud.openpai.framework import Framework, Task
from localcloud.openpai.storages import task_storages
from localcloud.openpai.store import JobStore
from localcloud.openpai.tasks import TaskAttempt, TaskImage, TaskStorage


def logs_folder(home: Path) -> Path:
    return accounts.folder(home) / "logs"


def log_folder(home: Path, attempt: str) -> Path:
    return logs_folder(home) / attempt


class Jobs:
    """The texts of jobs that have not ended, with their secrets."""

    def __init__(self, home: Path, store: JobStore) -> None:
        self._home, self._store = home, store
        self._protocols: dict[str, Mapping[str, Any]] = {}

    def protocol(self, name: str) -> Mapping[str, Any]:
        if name not in self._protocols:
            self._protocols[name] = json.loads(self._store.text(name, "protocol"))
        return self._protocols[name]

    def forget(self, name: str) -> None:
        self._protocols.pop(name, None)

    def attempts(self, framework: Framework, tasks: Sequence[Task]) -> list[Callable[[], TaskAttempt]]:
        """Functions that make the attempts of these tasks, to be called one by one: a large job takes long."""
        protocol, user = self.protocol(framework.name), framework.name.partition("~")[0]
        common = {
            **environment.job_variables(user, framework, protocol),
            **environment.peer_variables(framework.tasks.values(), framework.policy),
        }
        roles = {role.name for role in framework.policy.roles}
        commands = {role: entrypoint(protocol, role) for role in roles}
        images = {role: _image(protocol, role) for role in roles}
        storages = task_storages(self._home, protocol, user)
        return [
            partial(self._attempt, framework, task, common, commands[role], images[role], storages)
            for task in tasks
            for role in (task.role.name,)
        ]

    def _attempt(
        self, framework: Framework, task: Task, common: dict[str, str], command: str, image: TaskImage,
        storages: tuple[TaskStorage, ...],
    ) -> TaskAttempt:  # fmt: skip
        protocol, last, role = self.protocol(framework.name), task.last, task.role
        user, _, job = framework.name.partition("~")
        logs = log_folder(self._home, last.id)
        logs.mkdir(parents=True, exist_ok=True)
        return TaskAttempt(
            id=last.id, user=user, job=job, job_attempt=last.job_attempt, role=role.name, index=task.index,
            attempt=last.number, address=last.address, ports=last.ports, image=image, command=command,
            environment=environment.task_variables(framework, task, common), protocol=protocol, storages=storages,
            logs=logs, memory_mb=role.memory_mb,
        )  # fmt: skip


def _image(protocol: Mapping[str, Any], role: str) -> TaskImage:
    name = protocol["taskRoles"][role]["dockerImage"]
    row = next(each for each in protocol["prerequisites"] if (each["type"], each["name"]) == ("dockerimage", name))
    auth = {key: with_secrets(str(text), protocol.get("secrets")) for key, text in (row.get("auth") or {}).items()}
    return TaskImage(row["uri"], auth.get("registryuri", ""), auth.get("username", ""), auth.get("password", ""))
