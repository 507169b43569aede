# SPDX-License-Identifier: Apache-2.0
"""The interface between the controller of the local OpenPAI and the hosts: task attempts, and reports about them.

The controller calls `Tasks`, the hosts call `TaskReports`. Both are called on the event loop and return at once, so
that neither side waits for the other.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

# Each task of the cluster is a host in this network. The controller assigns the addresses.
CLUSTER_NETWORK = "10.151.0.0/16"
CLUSTER_ROUTER = "10.151.0.1"
# Plugins of OpenPAI that need what the local cluster does not have: a server in each task, or other storages.
ABSENT_PLUGINS = frozenset({"git", "ssh", "teamwise_storage", "tensorboard"})
# The code of an attempt that was lost with its host: it is retried, and not counted.
LOST = -1001
log = logging.getLogger("localcloud")


@dataclass(frozen=True)
class TaskImage:
    """The image of a task."""

    uri: str


@dataclass(frozen=True)
class TaskStorage:
    """A storage that the task sees at `mount`. `folder`: its folder on this machine, which exists."""

    name: str
    mount: str
    folder: Path
    read_only: bool = False


@dataclass(frozen=True)
class TaskAttempt:
    """An attempt of a task, with everything that the hosts need.

    `id` is unique, and valid as a file's name. `command` is the variable USER_CMD: parameters, script, data and output
    are filled in, secrets are still references. `protocol` is the whole job as it was submitted, with its secrets: the
    runtime reads prerequisites and plugins there. `environment` has all variables PAI_* and FC_*. `logs` is the folder
    of the attempt's log files, which exists. Each regular file there is a log: `stdout`, `stderr`, `all`, and others
    that the runtime writes.
    """

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
    """How an attempt ended. `code`: the container's exit code, which the runtime sets: 0, 128 plus a signal, 255 for
    any other failure of the user's command, or another row of catalog/openpai_exits.toml. `details` is for people."""

    code: int
    details: str = ""


class Tasks(Protocol):
    """Carries out task attempts. `localcloud/openpai/hosts` implements it."""

    async def recover(self) -> None:
        """Ends the remaining processes of a killed cloud. The controller counts their attempts as lost."""

    def start(self, attempt: TaskAttempt) -> None:
        """Starts an attempt. The attempts of a gang are started directly one after the other."""

    def stop(self, attempt: str) -> None:
        """Stops an attempt. `TaskReports.ended` reports its end. An unknown attempt has ended already."""


class TaskReports(Protocol):
    """Takes the hosts' reports. `localcloud/openpai/controller.py` implements it. Reports about ended or unknown
    attempts are ignored."""

    def running(self, attempt: str) -> None:
        """The processes of an attempt have started."""

    def ended(self, attempt: str, how: TaskExit) -> None:
        """All processes of an attempt have ended."""


class NoTasks:
    """For a cloud without hosts: each attempt ends at once, with the reason."""

    REASON = "No hosts are attached to this local cloud: nothing runs its tasks"

    def __init__(self, reports: TaskReports) -> None:
        self._reports = reports

    async def recover(self) -> None: ...

    def start(self, attempt: TaskAttempt) -> None:
        log.warning("%s: %s", attempt.id, self.REASON)
        self._reports.ended(attempt.id, TaskExit(-200, self.REASON))

    def stop(self, attempt: str) -> None: ...
