# SPDX-License-Identifier: Apache-2.0
"""What the controller of the local OpenPAI tells the hosts about task attempts, and what the hosts tell back.

The controller calls `Tasks`; the hosts call `TaskReports`. Both are called on the event loop, and both return at once:
neither side waits for the other.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

# Every task of the cluster is one host of this network. The controller gives out the addresses.
CLUSTER_NETWORK = "10.151.0.0/16"
CLUSTER_ROUTER = "10.151.0.1"
# Plugins of OpenPAI that need what the local cluster has not: a server in each task, other storages.
ABSENT_PLUGINS = frozenset({"git", "ssh", "teamwise_storage", "tensorboard"})
# The code of an attempt that was lost with its host: tried again, and not counted.
LOST = -1001
log = logging.getLogger("localcloud")


@dataclass(frozen=True)
class TaskImage:
    """The image of a task. Its password is in clear text here."""

    uri: str
    registry: str = ""
    user: str = ""
    password: str = ""


@dataclass(frozen=True)
class TaskStorage:
    """A storage that the task sees at `mount`. `folder` is where it is; it exists."""

    name: str
    mount: str
    folder: Path
    read_only: bool = False


@dataclass(frozen=True)
class TaskAttempt:
    """One attempt of one task, with everything that it is told. `id` is unlike that of any other attempt, and fits in a
    file's name. `command` is the variable USER_CMD: parameters, script, data and output are in it, secrets are still
    references. `protocol` is the whole job as it was submitted, with its secrets: the runtime reads prerequisites and
    plugins in it. `environment` has all variables PAI_* and FC_*. `logs` is the folder of the attempt's log files; it
    exists. Each regular file there is a log: `stdout`, `stderr`, `all`, and what else the runtime writes."""

    id: str
    user: str
    job: str
    job_attempt: int
    role: str
    index: int
    attempt: int
    address: str
    ports: Mapping[str, tuple[int, ...]]
    image: TaskImage
    command: str
    environment: Mapping[str, str]
    protocol: Mapping[str, Any]
    storages: tuple[TaskStorage, ...]
    logs: Path
    memory_mb: int

    @property
    def framework(self) -> str:
        return f"{self.user}~{self.job}"


@dataclass(frozen=True)
class TaskExit:
    """How an attempt ended. `code` is the container's, after the runtime: 0, 128 and a signal, 255 for any other
    failure of the user's command, or another row of catalog/openpai_exits.toml. `details` says more, for people."""

    code: int
    details: str = ""


class Tasks(Protocol):
    """What carries out task attempts. `localcloud/hosts/openpai` implements it."""

    async def recover(self) -> None:
        """Ends what a killed cloud has left of its attempts. The controller takes them for lost."""

    def start(self, attempt: TaskAttempt) -> None:
        """The attempt should run. Attempts of one gang are started right after one another."""

    def stop(self, attempt: str) -> None:
        """The attempt should end. `TaskReports.ended` says when it has. One that is unknown has ended already."""


class TaskReports(Protocol):
    """What the hosts say. `localcloud/openpai/cluster.py` implements it. Reports of attempts that have ended, or that
    nobody knows, do nothing."""

    def running(self, attempt: str) -> None:
        """Its processes have started."""

    def ended(self, attempt: str, how: TaskExit) -> None:
        """None of its processes runs any more."""


class NoTasks:
    """Stands in where nothing carries out tasks: each ends at once, and says why."""

    WHY = "No hosts are attached to this local cloud: nothing runs its tasks"

    def __init__(self, reports: TaskReports) -> None:
        self._reports = reports

    async def recover(self) -> None: ...

    def start(self, attempt: TaskAttempt) -> None:
        log.warning("%s: %s", attempt.id, self.WHY)
        self._reports.ended(attempt.id, TaskExit(-200, self.WHY))

    def stop(self, attempt: str) -> None: ...
