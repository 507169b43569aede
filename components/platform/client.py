# SPDX-License-Identifier: Apache-2.0
"""The client of a platform's runs, for the provider, commands, local stacks and rehearsals. It also waits for a run's
state, with a timeout and with visible progress."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from catalog.platforms import Capability, platforms_with, require_capability
from components.platform.calls import Call, ProviderError, read_at_once
from components.platform.inputs import own_inputs
from components.platform.runs import UNSUCCESSFUL, NodeRun, RunSpec, overall_state
from components.platform.values import Properties, canonical_json
from launcher.escaping import terminal_line

if TYPE_CHECKING:
    from pathlib import Path

    from components.platform.calls import LocalCloud, Tell
    from components.platform.runs import Try
    from components.platform.status import ConnectionsSeen, MachineSeen, NodeStatus, RunStatus, WantedRuns
    from components.platform.tries import PlannedTry, ReadyTry


# How many seconds the first read retries a cloud that does not answer: the user waits for it. Later reads may take
# longer.
FIRST_PATIENCE = 10.0
# Nodes whose lines are read at the same time.
_NODES_AT_ONCE = 8


class UnknownPlaceError(Exception):
    """The command does not know the place of the runs. The text explains how to name it."""


@dataclass(frozen=True)
class Where:
    """The place and the credentials of a stack: on the local `cloud`, at the `place` that the user named, or by
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
    """Reads the wanted runs repeatedly, and caches what never changes about a run."""

    @abstractmethod
    def look(self, call: Call, deeply: bool = True, history: bool = False) -> list[RunStatus]:
        """Every run, the oldest first. `deeply`: with the launchers' status. `history`: with earlier attempts."""

    def machines(self, call: Call) -> Sequence[MachineSeen]:
        """Machines that stay between runs, and cost while they are up. Empty if each run has its own machines."""
        return ()


class Runs(ABC):
    """The runs of a platform, for one caller. Methods that a platform may lack have a default."""

    # The error if no place of the runs is named.
    unknown_place: str
    # The region of the runs, if it differs from the stack file's.
    region: str | None = None

    @property
    @abstractmethod
    def place(self) -> str:
        """The place whose runs are listed. Empty if none is named: then only runs with known ids can be read."""

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
        """Requests the end of every running node, without waiting for it."""

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
        """The last lines of the node, oldest first. `patiently`: waits some seconds for the first lines. Raises
        ProviderError if they cannot be read."""

    def last_lines_of_nodes(
        self, call: Call, nodes: Sequence[NodeStatus], limit: int
    ) -> list[list[str] | ProviderError]:
        """The last lines of each node, or why they cannot be read. Waits for no lines. Nodes that matter most come
        first: of the others, there may be fewer lines than `limit`."""

        def read(node: NodeStatus) -> list[str] | ProviderError:
            try:
                return self.last_lines(call, node.run, limit, patiently=False)
            except ProviderError as error:
                return error

        return read_at_once(read, nodes, _NODES_AT_ONCE)

    def place_of(self, run: RunStatus) -> FolderPlace | None:
        """The bucket and folder of a start. None if starts have no folder in a bucket."""
        return None

    def prepare_try(self, call: Call, planned: PlannedTry, folder: Path) -> ReadyTry:
        """Reads the deployed run. `folder`: that of the stack file. Raises TryError if nothing is deployed."""
        from components.platform.tries import TryError

        raise TryError(f"the stack runs on {planned.plan.platform}: nothing can be tried there yet")

    def access_lacked(self, planned: PlannedTry, error: ProviderError) -> str:
        """The missing access that made a call for a try fail, in words. Empty for other errors."""
        return ""

    @abstractmethod
    def started(self, call: Call, spec: RunSpec) -> list[NodeRun]:
        """The nodes that an `ensure` of this spec has started, even if it was interrupted."""

    @abstractmethod
    def tries(self, call: Call, inputs: Properties, patiently: bool) -> list[Try]:
        """The tries of a run's job that have not ended. `patiently`: retries while the cloud is busy, which a preview
        does not."""

    def living(self, call: Call, inputs: Properties) -> Mapping[str, str]:
        """The runs of the same job that have not ended: their names in the stack file, by fingerprint. Empty if runs
        never have to wait for one another."""
        return {}

    @abstractmethod
    def describe(self, call: Call, run_id: str) -> tuple[Properties, list[NodeRun]] | None:
        """The inputs that would make this run, and its nodes. None if the run does not exist."""

    def ending(self, call: Call, run_id: str, inputs: Properties) -> str | None:
        """The result of a run whose records are gone, from its files. None if they do not show it."""
        return None


_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 10.0
_GROWTH = 1.4
_SECONDS_BETWEEN_LINES = 60.0


@dataclass(frozen=True, slots=True)
class RunClients(Capability):
    """Makes a platform's clients of runs."""

    place = "client.runs.RUN_CLIENTS"
    lacking = "the stack runs on {platform}: `trainyard runs` cannot show runs there yet"
    error = UnknownPlaceError
    # Whether a run's id has the form that this platform gives.
    knows: Callable[[str], bool]
    # The provider's client: for its configuration, and the inputs with endpoints and credentials.
    of_config: Callable[[Properties], Runs]
    # The client for the user of a command.
    of_caller: Callable[[Where], Runs]


class NotInTimeError(Exception):
    """The run did not reach its `until` before the timeout."""

    def __init__(self, minutes: float) -> None:
        super().__init__(f"{minutes:g} minutes")
        self.minutes = minutes


def has_reached(until: str, nodes: Sequence[NodeRun]) -> bool:
    if until == "accepted":
        return True
    if until == "started":
        return all(node.state != "ACCEPTED" for node in nodes)
    return all(node.over for node in nodes)


def unsuccessful_nodes(nodes: Sequence[NodeRun]) -> list[NodeRun]:
    """The nodes that ended without success. Nodes that ended because of another node come last."""
    lost = [node for node in nodes if node.state in UNSUCCESSFUL]
    return sorted(lost, key=lambda node: (node.state != "FAILED", node.finished_at or "9999"))


def wait_for_run(call: Call, runs: Runs, spec: RunSpec, nodes: list[NodeRun]) -> list[NodeRun]:
    """Waits until the run reaches its `until`, or one of its nodes is lost. Updates `nodes` in place."""
    minutes = {"accepted": spec.timeouts.access, "started": spec.timeouts.started}.get(
        spec.until, spec.timeouts.started + spec.timeouts.finished
    )
    watch = _Watch(call, spec)
    pause, deadline = _FIRST_PAUSE, call.deadline(minutes * 60)
    while not (unsuccessful_nodes(nodes) or has_reached(spec.until, nodes)):
        if time.monotonic() > deadline:
            raise NotInTimeError(minutes)
        call.stop.wait(pause)
        pause = min(pause * _GROWTH, _LONGEST_PAUSE)
        nodes[:] = runs.observe(call, nodes)
        watch.look(nodes)
    return nodes


def wait_for_end(call: Call, runs: Runs, nodes: list[NodeRun], minutes: float) -> list[NodeRun]:
    pause, deadline = _FIRST_PAUSE, call.deadline(minutes * 60)
    while not all(node.over for node in nodes):
        if time.monotonic() > deadline:
            raise NotInTimeError(minutes)
        elapsed = time.monotonic() - call.started
        left = sum(not node.over for node in nodes)
        call.report.status(f"waiting for {left} node{'' if left == 1 else 's'} to end, {elapsed:.0f} s so far")
        call.stop.wait(pause)
        pause = min(pause * _GROWTH, _LONGEST_PAUSE)
        nodes[:] = runs.observe(call, nodes)
    return nodes


def reason_to_wait(nodes: Sequence[NodeRun]) -> str:
    """The platform's message about nodes that have not begun, or ""."""
    waiting = (node for node in nodes if node.state == "ACCEPTED" and node.details)
    return next((terminal_line(node.details) for node in waiting), "")


class _Watch:
    """Reports the run's progress: always as the status line, and as a new line when it changes or takes long."""

    def __init__(self, call: Call, spec: RunSpec) -> None:
        self._call, self._spec = call, spec
        self._reported, self._reported_at = "", time.monotonic()

    def look(self, nodes: Sequence[NodeRun]) -> None:
        now, elapsed = overall_state(nodes), time.monotonic() - self._call.started
        states = ", ".join(f"{node.name} {node.state}" for node in nodes[:4]) + (" …" if len(nodes) > 4 else "")
        why = reason_to_wait(nodes)
        because = f": {why}" if why else ""
        self._call.report.status(f"{now} after {elapsed:.0f} s, waiting until {self._spec.until}: {states}{because}")
        if now + why != self._reported or time.monotonic() - self._reported_at > _SECONDS_BETWEEN_LINES:
            self._call.report.info(f"run {self._spec.display_name}: {now} after {elapsed:.0f} s ({states}){because}")
            self._reported, self._reported_at = now + why, time.monotonic()


@dataclass(frozen=True, slots=True)
class PlatformFunctions(Capability):
    """Functions of our provider, by their tokens, for what a platform's own provider cannot look up. Each gets the
    provider's configuration and its arguments."""

    place = "client.functions.FUNCTIONS"
    by_token: Mapping[str, Callable[[Properties, Properties], Properties]]


class RunPlatforms:
    """The platforms of one configured provider, made when first needed."""

    def __init__(self, config: Properties) -> None:
        self._config = config
        self._made: dict[tuple[str, str], Runs] = {}

    def function(self, token: str) -> Callable[[Properties], Properties] | None:
        for name in platforms_with(PlatformFunctions):
            if function := require_capability(name, PlatformFunctions).by_token.get(token):
                return partial(function, self._config)
        return None

    def of(self, inputs: Properties, run_id: str = "") -> Runs:
        """The platform of a run. An imported run has only its id."""
        known_by = (name for name in platforms_with(RunClients) if require_capability(name, RunClients).knows(run_id))
        name = inputs.get("platform") or next(known_by, None)
        if name is None:
            cause = f"`{run_id}` is not the id of a run on any platform."
            raise ProviderError(cause, "Give the id of the main node's run.")
        own = own_inputs(name)
        connects = {key: inputs[key] for key in own.connecting if inputs.get(key)} if own else {}
        key = (name, canonical_json(connects))
        if key not in self._made:
            self._made.setdefault(key, require_capability(name, RunClients).of_config({**self._config, **connects}))
        return self._made[key]
