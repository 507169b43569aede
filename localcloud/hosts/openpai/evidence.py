# SPDX-License-Identifier: Apache-2.0
"""What the firewalls of tasks counted, kept when their attempts are over: by task, so the last attempt's counts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localcloud.hosts import evidence
from localcloud.hosts.fabric import NO_NODES
from localcloud.openpai.tasks import TaskAttempt

_PREFIX = "openpai/"


def task_of(attempt: TaskAttempt) -> str:
    """The id of a node's run (docs/decisions/0023)."""
    return f"{_PREFIX}{attempt.framework}/{attempt.role}/{attempt.index}"


def is_task(identifier: str) -> bool:
    return identifier.startswith(_PREFIX)


@dataclass(frozen=True)
class TaskEvidence:
    """`folder` has one of each task. Names of jobs may be as long as a file's may be, so a digest is the name."""

    folder: Path

    def keep(self, task: str, attempt: Path) -> None:
        """`attempt`: the folder of the attempt that has ended. One that never got a host has nothing to keep."""
        if seen := evidence.read(attempt):
            place = self._place(task)
            place.mkdir(parents=True, exist_ok=True)
            evidence.write(place, {**seen, "run": task})

    def read(self, task: str) -> Mapping[str, Any]:
        return evidence.read(self._place(task)) or evidence.document(task, NO_NODES, ())

    def _place(self, task: str) -> Path:
        return self.folder / hashlib.sha256(task.encode()).hexdigest()[:32]
