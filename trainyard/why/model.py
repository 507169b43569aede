# SPDX-License-Identifier: Apache-2.0
"""The values of a verdict: what is known of a run, and what it says about the cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from components.platform.status import RunStatus

# Kinds of evidence, the stronger ones first.
EvidenceKind = Literal["platform", "firewall", "flow log", "launcher", "stack", "output"]
# What no program on a node can write. Everything else is a node's own word.
OUTSIDE: frozenset[EvidenceKind] = frozenset({"platform", "firewall", "flow log"})
Certainty = Literal["certain", "likely", "unknown"]
# The closed list of causes for programs. New releases may add some.
Kind = Literal[
    "none",  # nothing is known to be wrong
    "unknown",  # something is wrong, and nothing says what
    "closed port",  # nodes cannot reach one another
    "port in use",  # another program or run has a port
    "memory",  # the node used all its memory
    "accelerator memory",
    "image",
    "capacity",
    "time limit",
    "cancelled",
    "machine",  # it was lost, stopped, replaced, or its hardware has errors
    "access",  # a statement or role lacks
    "store",  # the object store does not answer
    "missing node",  # it never arrived
    "killed",  # by a signal from outside, such as SIGKILL
    "crash",  # by a signal of its own, such as SIGSEGV
    "exception",
    "exit",  # with a code, without an exception
    "early end",  # a rank ended with 0 while others still needed it
    "deadlock",  # a rank is elsewhere while the others wait in a collective operation
    "no answer",  # a rank does not even answer a request for its stack, as when it is stopped
    "stall",  # no rank did anything
    "mismatch",  # ranks disagree about what they exchange
    "disk",
    "shared memory",
    "read-only",
    "interface",  # a wrong network interface
    "no internet",
    "module",  # a module or program that the image lacks
    "lost peer",  # a connection to another rank broke
    "node",  # the node's own folder, clock or devices
    "other",
]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that was seen, in words, and the ranks that it is about."""

    kind: EvidenceKind
    words: str
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known about the cause. `line`: of the team's code, such as `train.py:41`. `rule`: the rule or statement
    to add. `look`: where to look on, if the cause is unknown."""

    kind: Kind
    cause: str
    certainty: Certainty
    ranks: tuple[int, ...] = ()
    line: str = ""
    rule: str = ""
    remedy: str = ""
    look: str = ""
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """All that is known of a run. `output`: the last lines of the program of each rank, and `launcher_lines`: those of
    its launcher. `request`: the token of the request for stacks that was made now; empty if none was. `framework`: as
    its launch documents call it; empty if unknown. `outside_words`: whether the platform's words about nodes come from
    outside of them."""

    run: RunStatus
    output: Mapping[int, tuple[str, ...]]
    launcher_lines: Mapping[int, tuple[str, ...]]
    request: str = ""
    framework: str = ""

    @property
    def outside_words(self) -> bool:
        """Whether the platform's words about nodes come from outside of them."""
        return not self.run.told_by_nodes

    def status_of(self, rank: int) -> Mapping[str, Any]:
        return next((node.launcher_status or {} for node in self.run.nodes if node.rank == rank), {})

    def name_of(self, rank: int) -> str:
        return next((f"rank {rank} ({node.run.name})" for node in self.run.nodes if node.rank == rank), f"rank {rank}")
