# SPDX-License-Identifier: Apache-2.0
"""The client of a platform's runs. The provider, every command, local stacks and rehearsals ask it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from components.platform.calls import Call, ProviderError, Tell
    from components.platform.local_cloud import LocalCloud
    from components.platform.runs import NodeRun, RunSpec, Try
    from components.platform.status import ConnectionsSeen, MachineSeen, RunStatus, WantedRuns
    from components.platform.tries import PlannedTry, ReadyTry
    from components.platform.values import Properties


# How many seconds the first read retries a cloud that does not answer: the user waits for it. Later reads may take
# longer.
FIRST_PATIENCE = 10.0


class UnknownPlaceError(Exception):
    """The command does not know where the runs are. The text says how to name the place."""


@dataclass(frozen=True)
class Where:
    """Where a stack is, and as whom it is asked for: on the local `cloud`, at the `place` that the user named, or by
    `config`.

    `config` is the stack file's configuration, empty without a stack. `profile`: the caller's profile; by default the
    one that every client uses. `bucket` returns the name of the stack's bucket, for platforms that find runs there.
    """

    config: Mapping[str, Any]
    cloud: LocalCloud | None = None
    place: str | None = None
    tell: Tell = lambda line: None
    profile: str | None = None
    bucket: Callable[[], str] | None = None
    # The folder that paths in the stack file are relative to.
    folder: Path | None = None
    # Returns the firewall's counts of a run, if the caller knows them better than the platform does.
    connections: Callable[[RunStatus], ConnectionsSeen | None] | None = None


class FolderPlace(Protocol):
    @property
    def bucket(self) -> str: ...

    @property
    def prefix(self) -> str: ...


class LineMerger(Protocol):
    def new(self, runs: Iterable[RunStatus]) -> Iterator[str]:
        """The complete lines since the last call, each with its rank."""

    def unfinished(self) -> Iterator[str]:
        """The incomplete last lines, such as progress bars."""


class RunReader(ABC):
    """Reads the wanted runs again and again, and caches what never changes about a run."""

    @abstractmethod
    def look(self, call: Call, deeply: bool = True, history: bool = False) -> list[RunStatus]:
        """Every run, the oldest first. `deeply`: with the launchers' status. `history`: with earlier attempts."""

    def machines(self, call: Call) -> Sequence[MachineSeen]:
        """Machines that stay between runs, and cost while they are up. Empty if each run has its own machines."""
        return ()


class Runs(ABC):
    """The runs of a platform, for one caller. Methods that a platform may lack have a default."""

    # The error where nobody says at which place the runs are.
    unknown_place: str
    # The region of the runs, if it differs from the stack file's.
    region: str | None = None

    @property
    @abstractmethod
    def place(self) -> str:
        """Where runs are listed. Empty if nobody named a place: then only runs can be asked for whose ids are known."""

    @property
    @abstractmethod
    def where(self) -> str:
        """The place in the platform's terms."""

    @abstractmethod
    def ensure(self, call: Call, spec: RunSpec, started: Sequence[NodeRun]) -> Iterator[NodeRun]:
        """Starts every node that does not run yet. Idempotent: it finds nodes that an interrupted call has started.

        Yields each node as soon as it exists, so that the caller knows it even if a later node cannot be started.
        """

    @abstractmethod
    def observe(self, call: Call, nodes: Sequence[NodeRun]) -> list[NodeRun]:
        """The present state of the nodes. A node that no longer exists is `DELETED`."""

    @abstractmethod
    def cancel(self, call: Call, nodes: Sequence[NodeRun]) -> None:
        """Asks every running node to end, and does not wait."""

    @abstractmethod
    def release(self, call: Call, nodes: Sequence[NodeRun]) -> None:
        """Marks the runs as history, so that no later `ensure` adopts them."""

    @abstractmethod
    def relabel(self, call: Call, spec: RunSpec, nodes: Sequence[NodeRun]) -> None:
        """Gives the runs the names and tags of the spec."""

    @abstractmethod
    def reader(self, wanted: WantedRuns) -> RunReader: ...

    @abstractmethod
    def merger(self, call: Call, ranks: frozenset[int]) -> LineMerger:
        """Merges the lines of these ranks. Without ranks: of all."""

    @abstractmethod
    def last_lines(self, call: Call, node: NodeRun, limit: int, patiently: bool = True) -> list[str]:
        """The last lines of the node, oldest first. `patiently`: if there are none, it waits a moment for those that
        are on their way. Raises ProviderError if they cannot be read."""

    def place_of(self, run: RunStatus) -> FolderPlace | None:
        """The bucket and folder of a start. None if starts have no folder in a bucket."""
        return None

    def prepare_try(self, call: Call, planned: PlannedTry, folder: Path) -> ReadyTry:
        """Reads the deployed run. `folder`: that of the stack file. Raises TryError if nothing is deployed."""
        from components.platform.tries import TryError

        raise TryError(f"the stack runs on {planned.plan.platform}: nothing can be tried there yet")

    def access_lacked(self, planned: PlannedTry, error: ProviderError) -> str:
        """What gives the caller the access for lack of which a call for a try was refused. Empty for other errors."""
        return ""

    @abstractmethod
    def started(self, call: Call, spec: RunSpec) -> list[NodeRun]:
        """The nodes that an `ensure` of this spec has started, however far it came."""

    @abstractmethod
    def tries(self, call: Call, inputs: Properties, patiently: bool) -> list[Try]:
        """The tries of a run's job that have not ended. A preview is not patient: it does not retry a busy cloud."""

    def living(self, call: Call, inputs: Properties) -> Mapping[str, str]:
        """The runs of the same job that have not ended: by fingerprint, the name in the stack file. Empty where no run
        has to wait for another."""
        return {}

    @abstractmethod
    def describe(self, call: Call, run_id: str) -> tuple[Properties, list[NodeRun]] | None:
        """The inputs that would make this run, and its nodes. None if the run does not exist."""

    def ending(self, call: Call, run_id: str, inputs: Properties) -> str | None:
        """How a run ended whose records are gone, from the files that it left. None if they do not say."""
        return None
