# SPDX-License-Identifier: Apache-2.0
"""What a platform must be able to do for a run, and the tries that it finds beside one."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from components.platform.calls import Call
from components.platform.runs import NodeRun, RunSpec
from components.platform.values import Properties

# How the fingerprint of a try begins, which no stack has in its state. Then comes the run that it is like.
_TRY = "try/"


def fingerprint_of_try(like: str, fingerprint: str) -> str:
    """The fingerprint of a try: it also says which run of the job the try is like."""
    return f"{_TRY}{like}/{fingerprint}"


def liked_by(fingerprint: str) -> str | None:
    """The run that a try is like; empty if its job had none. None if this is not the fingerprint of a try."""
    return fingerprint.removeprefix(_TRY).rpartition("/")[0] if fingerprint.startswith(_TRY) else None


class Try(NamedTuple):
    """A try that has not ended. `like` is the run of the stack that it repeats."""

    title: str
    like: str
    nodes: tuple[NodeRun, ...]


class RunPlatform(Protocol):
    """A place where runs run."""

    def ensure(self, call: Call, spec: RunSpec, started: Sequence[NodeRun]) -> Iterator[NodeRun]:
        """Starts every node that does not run yet. Nodes that an interrupted attempt started are found and kept.

        Yields each node as soon as it exists: nothing is lost if a later node cannot be started.
        """

    def observe(self, call: Call, nodes: Sequence[NodeRun]) -> list[NodeRun]:
        """The nodes as they are now; one that no longer exists is `DELETED`."""

    def cancel(self, call: Call, nodes: Sequence[NodeRun]) -> None:
        """Asks every living node to end, and does not wait."""

    def release(self, call: Call, nodes: Sequence[NodeRun]) -> None:
        """Marks the runs as history: no later create takes them for its own."""

    def relabel(self, call: Call, spec: RunSpec, nodes: Sequence[NodeRun]) -> None:
        """Give the runs the names and tags of the spec."""

    def last_lines(self, call: Call, node: NodeRun, limit: int) -> list[str]:
        """The last lines of the node, oldest first. Raises ProviderError if they cannot be read."""

    def tries(self, call: Call, inputs: Properties, patiently: bool) -> list[Try]:
        """The tries that are alive beside a run. A preview is not patient: it asks a busy cloud only once."""

    def living(self, call: Call, inputs: Properties) -> Mapping[str, str]:
        """The runs of the same job that have not ended: by fingerprint, the name in the stack file."""

    def describe(self, call: Call, run_id: str) -> tuple[Properties, list[NodeRun]] | None:
        """The inputs that would make this run, and its nodes. None if the run does not exist."""

    def ending(self, call: Call, run_id: str, inputs: Properties) -> str | None:
        """How a run ended whose records are gone, read from the files it left. None if they do not say."""
