# SPDX-License-Identifier: Apache-2.0
"""Training runs in the console, for all platforms."""

from __future__ import annotations

from dataclasses import dataclass

from components.platform.runs import NodeRun, overall

MOST_RUNS = 100
# Ranks shown of a run.
MOST_RANKS = 256
LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class RunNode:
    """A rank. `log`: where it prints. `machine`: the id under which the hosts have its firewall's counts."""

    rank: int
    role: str
    run: NodeRun
    log: str = ""
    machine: str = ""


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """A start of a run. `key`: its unique id in the cloud, which is that of its first node's run. `variables`: the
    names of its environment variables."""

    key: str
    stack: str
    title: str
    attempt: int | None
    created: float
    nodes: tuple[RunNode, ...]
    variables: tuple[str, ...]

    @property
    def state(self) -> str:
        return overall(node.run for node in self.nodes)

    @property
    def over(self) -> bool:
        return all(node.run.over for node in self.nodes)
