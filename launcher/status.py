# SPDX-License-Identifier: Apache-2.0
"""This node's status object, which `trainyard runs` reads. It is written on change, and at intervals for progress."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from launcher.board_client import BoardClient
from launcher.document import Launch

TRANSPORT_VARIABLE = "TRAINYARD_TRANSPORT"
PROGRESS_SECONDS = 5.0
_LOOK_SECONDS = 0.25
_TAIL = 16384
_DEEPEST = 10
_LONGEST_BAR = 200
_MOST_STACKS = 4


@dataclass
class Status:
    """The content of the object. `culprit`: the rank whose failure ended this node. `at`: when it was written.

    `bar`: the line that its processes redraw. `transport`: how data moves between machines, if the platform chose that.
    `preflight`: what the tests before training found (launcher/preflight.py); null if there were none. `stacks`: where
    its processes were, the newest last (launcher/stacks/report.py); null if nobody has looked.
    `lost`: the files that are lost with the node (launcher/losses.py). `localOnly`: those that only the local cloud
    keeps.
    """

    rank: int
    node: str
    role: str
    address: str = ""
    state: str = "waiting"
    code: int | None = None
    reason: str = ""
    culprit: int | None = None
    tries: int = 0
    waitedSeconds: float | None = None  # noqa: N815  # as the object names it
    firstStepSeconds: float | None = None  # noqa: N815
    ranSeconds: float | None = None  # noqa: N815
    progress: Any = None
    bar: str = ""
    transport: str = ""
    preflight: Any = None
    stacks: Any = None
    lost: Any = None
    localOnly: Any = None  # noqa: N815
    at: str = ""


@dataclass
class StatusReporter:
    """Keeps the status object up to date, if there is a board."""

    launch: Launch
    board_client: BoardClient | None
    progress_file: str
    bar: Callable[[], str] = lambda: ""
    transport: str = ""
    _status: Status = field(init=False)
    _started: float = field(default=0.0, init=False)
    _looked: float = field(default=0.0, init=False)
    _written_at: float = field(default=0.0, init=False)
    _size: int = field(default=-1, init=False)

    def __post_init__(self) -> None:
        self._status = Status(self.launch.rank, self.launch.node, self.launch.role, transport=self.transport)

    def change(self, **changes: Any) -> None:
        """Changes the status and writes it at once."""
        for name, value in changes.items():
            setattr(self._status, name, value)
        self._write()

    def note_preflight(self, result: Mapping[str, Any]) -> None:
        """Adds the result to what is written next, so that a test without findings costs no request."""
        self._status.preflight = result or None

    def note_stacks(self, record: Mapping[str, Any]) -> None:
        """Adds where the processes are, and writes that at once."""
        self.change(stacks=[*(self._status.stacks or ()), record][-_MOST_STACKS:])

    def begin(self) -> None:
        """Called before the command starts: only lines of the progress file after this count."""
        self._size = self._file_size()

    def started(self) -> None:
        """Called when the command has started. It may have written progress already."""
        self._started = time.monotonic()
        self.change(state="running", tries=self._status.tries + 1, code=None, reason="", culprit=None, ranSeconds=None)

    def idle(self, why: str) -> None:
        """The node has become idle (`why`), or active again (`why` is empty)."""
        self.change(reason=why)

    def tick(self) -> None:
        """Checks whether the script has written progress, or moved its progress bar."""
        now = time.monotonic()
        if self.board_client is None or now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        first = self._status.firstStepSeconds is None
        if not first and now - self._written_at < PROGRESS_SECONDS:
            return
        size = self._file_size()
        line = self._last_line() if size != self._size else None
        if line is None:
            self._write_bar(now)
            return
        self._size = size
        if first:
            self._status.firstStepSeconds = round(now - self._started, 3)
        self.change(progress=line)

    def _write_bar(self, now: float) -> None:
        bar = self.bar()[:_LONGEST_BAR]
        if bar != self._status.bar and now - self._written_at >= PROGRESS_SECONDS:
            self.change(bar=bar)

    def _file_size(self) -> int:
        try:
            return os.stat(self.progress_file).st_size
        except OSError:
            return -1

    def _last_line(self) -> Any:
        """The last whole line as JSON; None if there is none."""
        try:
            with open(self.progress_file, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
                lines = file.read().split(b"\n")[:-1]
            return finite_json(json.loads(lines[-1])) if lines else None
        except (OSError, ValueError, RecursionError):
            return None

    def last(self) -> None:
        """Called after the command: reports its last progress, and at the first call how long it ran."""
        if self._started and self._status.ranSeconds is None:
            self._status.ranSeconds = round(time.monotonic() - self._started, 3)
        self._looked, self._written_at = 0.0, 0.0
        self.tick()

    def _write(self) -> None:
        self._written_at = time.monotonic()
        self._status.at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        if self.board_client is not None:
            self.board_client.post(f"status/{self.launch.rank}.json", asdict(self._status))


def finite_json(value: Any, depth: int = 0) -> Any:
    """A script's value as valid JSON: `NaN` and the like become text, and deep nesting is cut."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, (dict, list)) and depth == _DEEPEST:
        return "…"
    if isinstance(value, dict):
        return {key: finite_json(item, depth + 1) for key, item in value.items()}
    return [finite_json(item, depth + 1) for item in value] if isinstance(value, list) else value
