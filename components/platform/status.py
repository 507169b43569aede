# SPDX-License-Identifier: Apache-2.0
"""The current status of runs on any platform: for each rank the platform's state and the launcher's status."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from components.plan.show import to_plain_values
from components.platform.runs import NodeRun, overall_state
from components.platform.traffic import DroppedResult

# The launcher writes far less: a larger object is not its own.
LONGEST_BYTES = 64 * 1024
_LONGEST_TEXT, _MOST_ITEMS, _DEEPEST = 500, 50, 5
_LARGEST = 2**53
CUT = "…"
# The length of a progress line for people. JSON output has all of it.
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """One rank. `launcher_status` is the launcher's status, if it can be read."""

    rank: int
    run: NodeRun
    role: str
    log: str | None = None
    launcher_status: Mapping[str, Any] | None = None

    @property
    def state(self) -> str:
        """The platform's state. If that is IN_PROGRESS: the launcher's state, which has more detail."""
        reported = str((self.launcher_status or {}).get("state") or "")
        return reported if reported and self.run.state == "IN_PROGRESS" else self.run.state


@dataclass(frozen=True, slots=True)
class ConnectionsSeen:
    """The counts of the firewalls of a run's nodes: dropped packets, and `count` connections.

    `count` is None if only flow logs are available: they show dropped packets some minutes late, and no connections.
    """

    dropped: tuple[DroppedResult, ...]
    count: int | None = None
    used_rules: int = 0
    unused_rules: int = 0


@dataclass(frozen=True, slots=True)
class RunStatus:
    """One start of a run. `connections`: the firewalls' counts; None if unknown, as in a subnet without a flow log.

    `folder`: the address of the folder where this start keeps its files. None if it has none. `told_by_nodes`: what is
    known about the nodes' ends comes from the nodes themselves, not from a platform outside of them.
    """

    stack: str
    job: str
    name: str
    attempt: int | None
    created: datetime
    nodes: tuple[NodeStatus, ...]
    connections: ConnectionsSeen | None = None
    folder: str | None = None
    told_by_nodes: bool = False

    @property
    def state(self) -> str:
        return overall_state(node.run for node in self.nodes)

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
    """A machine that stays between runs. `state` comes from the platform; `doing` and `reason` from the machine itself,
    or are empty. `since`: its last start."""

    job: str
    node: str
    id: str
    state: str
    doing: str
    since: datetime
    reason: str = ""

    @property
    def up(self) -> bool:
        """Whether it costs money now."""
        return self.state in ("pending", "running")


@dataclass(frozen=True, slots=True)
class WantedRuns:
    """Selects runs. A part that is None selects all. `sweep`: the runs that `run` stands for, if it names a sweep."""

    stack: str | None = None
    job: str | None = None
    run: str | None = None
    sweep: frozenset[str] = frozenset()

    def includes(self, tags: Mapping[str, str]) -> bool:
        if self.sweep and tags.get("run") not in self.sweep:
            return False
        wanted = {"stack": self.stack, "job": self.job, "run": None if self.sweep else self.run}
        return all(value in (None, tags.get(key)) for key, value in wanted.items())


def run_key(tags: Mapping[str, str]) -> tuple[str, ...]:
    """What identifies a run of a stack file across its attempts."""
    return tuple(tags.get(name, "") for name in ("stack", "job", "run"))


def parse_status(content: bytes) -> dict[str, Any] | None:
    """A launcher's status object, or None. Keys with values of a wrong type are left out."""
    document = parse_json(content)
    if not isinstance(document, Mapping):
        return None
    made = {key: fit(document[key]) for key, fit in _KEYS.items() if key in document}
    return {key: value for key, value in made.items() if value is not None}


def parse_json(content: bytes) -> Any:
    """JSON as Python reads it, `NaN` included; None for anything else."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def shorten_value(value: Any, depth: int = 0) -> Any:
    """A script's value, shortened so that people can read it."""
    if isinstance(value, str):
        return _cut_text(value)
    if isinstance(value, Mapping | list) and depth == _DEEPEST:
        return CUT
    if isinstance(value, Mapping):
        items = list(value.items())
        kept = {_cut_text(str(key)): shorten_value(item, depth + 1) for key, item in items[:_MOST_ITEMS]}
        return kept if len(items) <= _MOST_ITEMS else {**kept, CUT: len(items)}
    if isinstance(value, list):
        kept_items = [shorten_value(item, depth + 1) for item in value[:_MOST_ITEMS]]
        return kept_items if len(value) <= _MOST_ITEMS else [*kept_items, CUT]
    # Most JSON readers lose digits of larger numbers.
    return _cut_text(str(value)) if type(value) is int and abs(value) > _LARGEST else to_plain_values(value)


def _cut_text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    return value if len(value) <= _LONGEST_TEXT else value[:_LONGEST_TEXT] + CUT


def _whole_number(value: Any) -> int | None:
    return value if type(value) is int and abs(value) <= _LARGEST else None


def _valid_seconds(value: Any) -> float | None:
    return value if type(value) in (int, float) and 0 <= value <= _LARGEST else None


_KEYS: Mapping[str, Callable[[Any], Any]] = {
    "rank": _whole_number, "node": _cut_text, "role": _cut_text, "address": _cut_text, "state": _cut_text,
    "code": _whole_number, "reason": _cut_text, "tries": _whole_number, "culprit": _whole_number,
    "waitedSeconds": _valid_seconds, "firstStepSeconds": _valid_seconds, "ranSeconds": _valid_seconds,
    "progress": shorten_value, "bar": _cut_text, "transport": _cut_text, "preflight": shorten_value,
    "stacks": shorten_value,
    "lost": shorten_value, "localOnly": shorten_value, "at": _cut_text,
}  # fmt: skip


def duration_text(seconds: float) -> str:
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def progress_text(report: Any) -> str:
    """The last progress line of a training script, shortened."""
    if isinstance(report, Mapping):
        numbers = {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in report.items()}
        report = ", ".join(f"{key} {value}" for key, value in numbers.items())
    words = str(report) if report else ""
    return words if len(words) <= _LONGEST else words[:_LONGEST] + CUT
