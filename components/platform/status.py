# SPDX-License-Identifier: Apache-2.0
"""Runs as they are now, on whatever platform: each rank with its state there and what its launcher says."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from components.plan.show import plain
from components.platform.runs import NodeRun, overall
from components.platform.traffic import DroppedResult

# The launcher writes far less; a larger object is none of its own.
LONGEST_BYTES = 64 * 1024
_LONGEST_TEXT, _MOST_ITEMS, _DEEPEST = 500, 50, 5
_LARGEST = 2**53
CUT = "…"
# So much of a progress line is for people; JSON has the rest.
_LONGEST = 200


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
    """Whose runs: every part may be left open. `sweep`: the runs that `run` stands for, if it is a sweep's name."""

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
    """What a run of a stack file keeps from attempt to attempt."""
    return tuple(tags.get(name, "") for name in ("stack", "job", "run"))


def parse_status(content: bytes) -> dict[str, Any] | None:
    """A status object; None where it is none. Keys with values of a wrong type are left out."""
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


def shorten(value: Any, depth: int = 0) -> Any:
    """Whatever a script wrote, as JSON of a size that people can read."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping | list) and depth == _DEEPEST:
        return CUT
    if isinstance(value, Mapping):
        items = list(value.items())
        kept = {_text(str(key)): shorten(item, depth + 1) for key, item in items[:_MOST_ITEMS]}
        return kept if len(items) <= _MOST_ITEMS else {**kept, CUT: len(items)}
    if isinstance(value, list):
        kept_items = [shorten(item, depth + 1) for item in value[:_MOST_ITEMS]]
        return kept_items if len(value) <= _MOST_ITEMS else [*kept_items, CUT]
    # Larger numbers lose digits in most readers of JSON.
    return _text(str(value)) if type(value) is int and abs(value) > _LARGEST else plain(value)


def _text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    return value if len(value) <= _LONGEST_TEXT else value[:_LONGEST_TEXT] + CUT


def _whole(value: Any) -> int | None:
    return value if type(value) is int and abs(value) <= _LARGEST else None


def _seconds(value: Any) -> float | None:
    return value if type(value) in (int, float) and 0 <= value <= _LARGEST else None


_KEYS: Mapping[str, Callable[[Any], Any]] = {
    "rank": _whole, "node": _text, "role": _text, "address": _text, "state": _text, "code": _whole, "reason": _text,
    "tries": _whole, "culprit": _whole, "waitedSeconds": _seconds, "firstStepSeconds": _seconds,
    "ranSeconds": _seconds, "progress": shorten, "bar": _text, "transport": _text, "lost": shorten,
    "at": _text,
}  # fmt: skip


def duration(seconds: float) -> str:
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def progress(report: Any) -> str:
    """The last thing that a training script wrote of itself, in one short line."""
    if isinstance(report, Mapping):
        report = ", ".join(f"{key} {_short(value)}" for key, value in report.items())
    words = str(report) if report else ""
    return words if len(words) <= _LONGEST else words[:_LONGEST] + CUT


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
