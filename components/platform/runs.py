# SPDX-License-Identifier: Apache-2.0
"""A training run as values: its inputs, its nodes, and their states."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from components.platform.calls import ProviderError
from components.platform.inputs import EXPECTS, NODE_KEYS, is_own, mutable_inputs
from components.platform.values import Properties, canonical_json

# The platform's record of a node is gone. This does not say how the run ended.
DELETED = "DELETED"
TERMINAL = frozenset({"SUCCEEDED", "FAILED", "CANCELED", "NEEDS_ATTENTION", DELETED})
UNSUCCESSFUL = TERMINAL - {"SUCCEEDED"}
_LOST = UNSUCCESSFUL - {DELETED} | {"CANCELING"}
# The state of a run is the worst state of its nodes.
_WORST_FIRST = ("FAILED", "CANCELED", "NEEDS_ATTENTION", "ACCEPTED", "IN_PROGRESS", "SUCCEEDED")
# Some platforms give only a text for the reason of a failure, without a code.
_ABOUT_ACCESS = re.compile(r"polic(y|ies)|authori[sz]|permission|permitted|may not|denied|pull", re.IGNORECASE)
_SHOWN_AS = {"CANCELING": "CANCELED", "DELETED": "NEEDS_ATTENTION"}
# A line of a node's log that has only the label of its process.
_BLANK = re.compile(r"(\[\d+(\.\w+)*\])?\s*")
# The variable of a node that has its launch document.
LAUNCH_VARIABLE = "TRAINYARD_LAUNCH"
# The limit of stack files. A launch document with more was not written by a stack.
_MOST_REPLICAS = 10_000
# The prefix of a try's fingerprint, which marks it as being in no stack's state. The name of the repeated run follows.
_TRY = "try/"


@dataclass(frozen=True)
class NodeSpec:
    """One node. `own`: the inputs that only its platform has."""

    name: str
    role: str = ""
    rank: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    own: Mapping[str, Any] = field(default_factory=dict)

    @property
    def command_line(self) -> str | None:
        return shlex.join(self.arguments) if self.arguments else None


# The variable with the minutes that new policies and groups may need to take effect. The default is 5.
ACCESS_MINUTES = "TRAINYARD_ACCESS_MINUTES"


def _access_minutes() -> float:
    text = os.environ.get(ACCESS_MINUTES, "5")
    try:
        minutes = float(text or "5")
    except ValueError:
        minutes = math.nan
    if not math.isfinite(minutes) or minutes < 0:
        raise ProviderError(f"{ACCESS_MINUTES} is `{text}`.", "Give a number of minutes, 0 or more.")
    return minutes


@dataclass(frozen=True)
class Timeouts:
    """In minutes."""

    access: float = field(default_factory=_access_minutes)
    started: float = 30.0
    finished: float = 24 * 60.0


@dataclass(frozen=True)
class RunSpec:
    """The inputs that every run has. `own`: the platform's further inputs, by name."""

    platform: str
    display_name: str
    tags: Mapping[str, str]
    nodes: tuple[NodeSpec, ...]
    image: str | None
    maximum_runtime_minutes: int | None
    until: str
    timeouts: Timeouts
    fingerprint: str
    own: Mapping[str, Any]
    attempt: int = 1
    # In the form in which launchers read it. Empty: they test nothing.
    expects: str = ""


@dataclass(frozen=True)
class NodeRun:
    """One node's run, as the platform reports it."""

    name: str
    id: str
    state: str
    details: str = ""
    started_at: str | None = None
    finished_at: str | None = None

    @property
    def over(self) -> bool:
        return self.state in TERMINAL


def run_spec(urn: str, inputs: Properties) -> RunSpec:
    """The inputs of a resource that passed `Check`, as values."""
    return RunSpec(
        platform=inputs["platform"],
        display_name=inputs["displayName"],
        tags=inputs.get("tags") or {},
        nodes=tuple(
            NodeSpec(
                name=node["name"],
                role=node.get("role") or "",
                rank=node.get("rank") or 0,
                environment=node.get("environment") or {},
                arguments=tuple(node.get("arguments") or ()),
                own={key: value for key, value in node.items() if key not in NODE_KEYS},
            )
            for node in inputs["nodes"]
        ),
        image=inputs.get("image"),
        maximum_runtime_minutes=inputs.get("maximumRuntimeMinutes"),
        until=inputs["until"],
        timeouts=Timeouts(**{key: float(value) for key, value in (inputs.get("timeouts") or {}).items()}),
        fingerprint=fingerprint_of_run(urn, inputs),
        own={key: value for key, value in inputs.items() if is_own(key)},
        attempt=inputs.get("attempt") or 1,
        expects=canonical_json(inputs[EXPECTS]) if inputs.get(EXPECTS) else "",
    )


def fingerprint_of_run(urn: str, inputs: Properties) -> str:
    """Equal for the same run of the same resource. After an interrupted create, the next one finds the run by it."""
    mutable = mutable_inputs(inputs.get("platform"))
    runs = {key: value for key, value in inputs.items() if key not in mutable}
    return hashlib.sha256(f"{urn}\n{canonical_json(runs)}".encode()).hexdigest()[:32]


def overall_state(nodes: Iterable[NodeRun]) -> str:
    states = {_SHOWN_AS.get(node.state, node.state) for node in nodes}
    return next((state for state in _WORST_FIRST if state in states), "ACCEPTED")


def have_ended(nodes: Iterable[NodeRun]) -> bool:
    """Whether the run has certainly ended, even if its records were deleted. One lost node ends all others."""
    states = {node.state for node in nodes}
    return bool(states & _LOST) or states == {"SUCCEEDED"}


def remembered_nodes(recorded: Sequence[NodeRun], seen: Sequence[NodeRun]) -> list[NodeRun]:
    """The current nodes. A node whose record was deleted keeps its recorded end."""
    live = {node.name: node for node in seen if node.state != DELETED}
    past = {node.name: node for node in recorded if have_ended([node])}
    gone = {node.name: node for node in seen if node.state == DELETED}
    # The order stays: the first node is the main node, and its run is the resource.
    names = dict.fromkeys(node.name for node in (*recorded, *seen))
    chosen = {**gone, **past, **live}
    return [chosen[name] for name in names if name in chosen]


def run_outputs(inputs: Properties, nodes: Iterable[NodeRun]) -> Properties:
    node_runs = list(nodes)
    finished = [node.finished_at for node in node_runs if node.finished_at]
    result = {
        **inputs,
        "state": overall_state(node_runs),
        "nodeRuns": [
            {"name": node.name, "id": node.id, "state": node.state, "details": node.details} for node in node_runs
        ],
    }
    started = [node.started_at for node in node_runs if node.started_at]
    if started:
        result["startedAt"] = min(started)
    if finished and all(node.over for node in node_runs):
        result["finishedAt"] = max(finished)
    return result


def never_began(state: Properties) -> bool:
    """Whether the run failed before any of its nodes started."""
    return state.get("state") == "FAILED" and "startedAt" not in state


def wants_access(state: Properties) -> bool:
    """Whether the run failed before it began, for lack of access. A new policy may soon take effect and solve that."""
    details = (node["details"] or "" for node in state["nodeRuns"])
    return never_began(state) and any(_ABOUT_ACCESS.search(text) for text in details)


def read_launch_document(variables: Any) -> Mapping[str, Any]:
    """The launch document in a node's variables. Empty if there is none, or if it cannot be read."""
    try:
        launch = json.loads(variables.get(LAUNCH_VARIABLE, ""))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}
    return launch if isinstance(launch, dict) else {}


def folder_of(launch: Mapping[str, Any]) -> str | None:
    """The folder of a run's starts. Older launch documents have it in their section on peers."""
    peers = launch.get("peers")
    uri = launch.get("folder") or (peers.get("uri") if isinstance(peers, dict) else None)
    # No client accepts lone surrogates and control characters, and no stack has them.
    return uri if isinstance(uri, str) and uri.isprintable() else None


def ranks_of(document: Mapping[str, Any]) -> tuple[int, ...]:
    """The ranks of the document's role: they follow the order of roles. Empty if the document is not one of ours."""
    first = 0
    try:
        for role in document.get("roles", ()):
            replicas = min(int(role["replicas"]), _MOST_REPLICAS)
            if role["name"] == document.get("role"):
                return tuple(range(first, first + replicas))
            first += replicas
    except (KeyError, TypeError, ValueError):
        return ()
    return ()


def ranks_of_node(node: Mapping[str, Any]) -> Iterator[int]:
    """The ranks that one element of a run's `nodes` stands for."""
    first = int(node.get("rank") or 0)
    yield from range(first, first + int(node.get("replicas") or 1))


def ending_of(states: Collection[str | None]) -> str | None:
    """FAILED if one rank failed, SUCCEEDED if every rank succeeded. None if the files do not show it."""
    if "failed" in states:
        return "FAILED"
    # A service ends as `stopped` after the ranks that used it have succeeded.
    return "SUCCEEDED" if "succeeded" in states and set(states) <= {"succeeded", "stopped"} else None


def state_in(content: bytes | str) -> str | None:
    """The state in a status file. None if it is not one."""
    try:
        state = json.loads(content).get("state")
    except (ValueError, AttributeError, RecursionError):
        return None
    return state if isinstance(state, str) else None


def fingerprint_of_try(like: str, fingerprint: str) -> str:
    """The fingerprint of a try, which also names the run that the try repeats."""
    return f"{_TRY}{like}/{fingerprint}"


def liked_by(fingerprint: str) -> str | None:
    """The run that a try repeats, or "" if its job had none. None if this is not the fingerprint of a try."""
    return fingerprint.removeprefix(_TRY).rpartition("/")[0] if fingerprint.startswith(_TRY) else None


class Try(NamedTuple):
    """A try that has not ended. `like` is the run of the stack that it repeats."""

    title: str
    like: str
    nodes: tuple[NodeRun, ...]


def is_blank_line(line: str) -> bool:
    """Whether a line of a node's log says nothing."""
    return _BLANK.fullmatch(line) is not None
