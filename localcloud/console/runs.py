# SPDX-License-Identifier: Apache-2.0
"""Training runs as the console shows them, on whatever platform they are."""

from __future__ import annotations

from dataclasses import dataclass

from components.platform.runs import NodeRun, overall

MOST_RUNS = 100
# So many ranks of a run are shown.
MOST_RANKS = 256
LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class RunNode:
    """One rank. `log` is where it prints. `machine`: by what id the hosts know what its firewall saw."""

    rank: int
    role: str
    run: NodeRun
    log: str = ""
    machine: str = ""


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """One start of a run. `key` tells it from all others of the cloud: the id of its first node's run. `variables`:
    the names of its environment variables."""

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
