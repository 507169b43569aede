# SPDX-License-Identifier: Apache-2.0
"""The interface that starts, observes and ends runs on a platform, and finds their tries."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from components.platform.calls import Call
from components.platform.runs import NodeRun, RunSpec
from components.platform.values import Properties

# The prefix of a try's fingerprint, which marks it as being in no stack's state. The name of the repeated run follows.
_TRY = "try/"


def fingerprint_of_try(like: str, fingerprint: str) -> str:
    """The fingerprint of a try, which also names the run that the try repeats."""
    return f"{_TRY}{like}/{fingerprint}"


def liked_by(fingerprint: str) -> str | None:
    """The run that a try repeats; empty if its job had none. None if this is not the fingerprint of a try."""
    return fingerprint.removeprefix(_TRY).rpartition("/")[0] if fingerprint.startswith(_TRY) else None


class Try(NamedTuple):
    """A try that has not ended. `like` is the run of the stack that it repeats."""

    title: str
    like: str
    nodes: tuple[NodeRun, ...]


class RunPlatform(Protocol):
    """The operations on runs that the provider and commands need of a platform."""

    def ensure(self, call: Call, spec: RunSpec, started: Sequence[NodeRun]) -> Iterator[NodeRun]:
        """Starts every node that does not run yet. Idempotent: it finds nodes that an interrupted call has started.

        Yields each node as soon as it exists, so that the caller knows it even if a later node cannot be started.
        """

    def observe(self, call: Call, nodes: Sequence[NodeRun]) -> list[NodeRun]:
        """The present state of the nodes. A node that no longer exists is `DELETED`."""

    def cancel(self, call: Call, nodes: Sequence[NodeRun]) -> None:
        """Asks every running node to end, and does not wait."""

    def release(self, call: Call, nodes: Sequence[NodeRun]) -> None:
        """Marks the runs as history, so that no later `ensure` adopts them."""

    def relabel(self, call: Call, spec: RunSpec, nodes: Sequence[NodeRun]) -> None:
        """Gives the runs the names and tags of the spec."""

    def last_lines(self, call: Call, node: NodeRun, limit: int) -> list[str]:
        """The last lines of the node, oldest first. Raises ProviderError if they cannot be read."""

    def tries(self, call: Call, inputs: Properties, patiently: bool) -> list[Try]:
        """The tries of a run's job that have not ended. A preview is not patient: it does not retry a busy cloud."""

    def describe(self, call: Call, run_id: str) -> tuple[Properties, list[NodeRun]] | None:
        """The inputs that would make this run, and its nodes. None if the run does not exist."""

    def ending(self, call: Call, run_id: str, inputs: Properties) -> str | None:
        """How a run ended whose records are gone, from the files that it left. None if they do not say."""
