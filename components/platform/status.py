# SPDX-License-Identifier: Apache-2.0
"""Runs as they are now, on whatever platform: each rank with its state there and what its launcher says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from components.platform.runs import NodeRun, overall
from components.platform.traffic import DroppedResult


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """`launcher_status` is the launcher's own status, where it can be read."""

    rank: int
    run: NodeRun
    role: str
    log: str | None = None
    launcher_status: Mapping[str, Any] | None = None

    @property
    def state(self) -> str:
        """The platform's state; while that only says IN_PROGRESS, the launcher's."""
        said = str((self.launcher_status or {}).get("state") or "")
        return said if said and self.run.state == "IN_PROGRESS" else self.run.state


@dataclass(frozen=True, slots=True)
class ConnectionsSeen:
    """What the firewalls of a run's nodes counted: the packets that no rule let through, and `count` connections.

    `count` is None where only the packets are known, some minutes late: flow logs do not say which rule was used.
    """

    dropped: tuple[DroppedResult, ...]
    count: int | None = None
    used_rules: int = 0
    unused_rules: int = 0


@dataclass(frozen=True, slots=True)
class RunStatus:
    """`connections`: what firewalls counted. None where nobody can tell, as in a subnet without a flow log.

    `folder`: the address of the folder where this start of the run keeps its files. None if no launcher was told one.
    """

    stack: str
    job: str
    name: str
    attempt: int | None
    created: datetime
    nodes: tuple[NodeStatus, ...]
    connections: ConnectionsSeen | None = None
    folder: str | None = None

    @property
    def state(self) -> str:
        return overall(node.run for node in self.nodes)

    @property
    def over(self) -> bool:
        return all(node.run.over for node in self.nodes)

    @property
    def dropped(self) -> tuple[DroppedResult, ...] | None:
        return None if self.connections is None else self.connections.dropped

    @property
    def title(self) -> str:
        return f"{self.job}/{self.name}"


@dataclass(frozen=True, slots=True)
class MachineSeen:
    """A machine that stays between runs. `state`: the platform's word; `doing`: the machine's own, empty where it says
    nothing, and `reason` why. `since`: when it was started last."""

    job: str
    node: str
    id: str
    state: str
    doing: str
    since: datetime
    reason: str = ""

    @property
    def up(self) -> bool:
        """Whether it costs."""
        return self.state in ("pending", "running")


@dataclass(frozen=True, slots=True)
class WantedRuns:
    """Whose runs: every part may be left open."""

    stack: str | None = None
    job: str | None = None
    run: str | None = None

    def includes(self, tags: Mapping[str, str]) -> bool:
        wanted = {"stack": self.stack, "job": self.job, "run": self.run}
        return all(value in (None, tags.get(key)) for key, value in wanted.items())


def run_key(tags: Mapping[str, str]) -> tuple[str, ...]:
    """What a run of a stack file keeps from attempt to attempt."""
    return tuple(tags.get(name, "") for name in ("stack", "job", "run"))
