# SPDX-License-Identifier: Apache-2.0
"""Task attempts for the hosts of the local OpenPAI, without its REST server and its controller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from socket import socket
from typing import Any

from localcloud.hosts.fabric import Fabric
from localcloud.openpai.hosts.task_dispatch import ClusterTasks
from localcloud.openpai.tasks import TaskAttempt, TaskExit, TaskImage

ENDPOINT = "http://127.0.0.1:9"


@dataclass
class Reports:
    """What the hosts have reported, by attempt."""

    ran: list[str] = field(default_factory=list)
    ends: dict[str, TaskExit] = field(default_factory=dict)
    # What was left of the attempts after all had ended, by name.
    left: list[str] = field(default_factory=list)

    def running(self, attempt: str) -> None:
        self.ran.append(attempt)

    def ended(self, attempt: str, how: TaskExit) -> None:
        assert attempt not in self.ends, "an attempt ends once"
        self.ends[attempt] = how


def attempt_of(name: str, home: Path, command: str, **changes: Any) -> TaskAttempt:
    """One task of a job with one task."""
    logs = home / "logs" / name
    logs.mkdir(parents=True, exist_ok=True)
    role = changes.get("role", "main")
    image = changes.get("image", TaskImage("example.com/plain:1"))
    named = {"prerequisites": [{"type": "dockerimage", "name": "image", "uri": image.uri}]}
    job = {"taskRoles": {role: {"dockerImage": "image"}}, **named}
    number = len(list((home / "logs").iterdir()))
    made = TaskAttempt(
        id=name, user="ann", job="train", job_attempt=0, role="main", index=0, attempt=0,
        address=f"10.151.0.{number + 9}", ports={}, image=image, command=command,
        environment={"PAI_JOB_NAME": "ann~train"}, protocol=job, storages=(), logs=logs, memory_mb=2048,
    )  # fmt: skip
    return replace(made, **changes)


async def _nobody_serves(listener: socket) -> Callable[[], None]:
    return listener.close


@asynccontextmanager
async def hosts(home: Path, reports: Reports) -> AsyncIterator[ClusterTasks]:
    home.mkdir(mode=0o700, exist_ok=True)
    tasks = ClusterTasks(home / "tasks", Fabric(ENDPOINT, (), _nobody_serves), reports)
    try:
        yield tasks
    finally:
        await tasks.close()


def carried_out(home: Path, reports: Reports, attempts: Sequence[TaskAttempt]) -> Mapping[str, TaskExit]:
    """Starts these attempts together, and returns how they ended."""

    async def carry_out() -> None:
        async with hosts(home, reports) as tasks:
            for attempt in attempts:
                tasks.start(attempt)
            while not reports.ends.keys() >= {attempt.id for attempt in attempts}:
                await asyncio.sleep(0.02)
            reports.left = [path.name for path in (home / "tasks").iterdir()]

    asyncio.run(asyncio.wait_for(carry_out(), 120))
    return reports.ends
