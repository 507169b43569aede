# SPDX-License-Identifier: Apache-2.0
"""How this node is doing, as an object that `trainyard runs` reads: written on change, progress now and then."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from launcher.desk import Desk
from launcher.document import Launch

TRANSPORT_VARIABLE = "TRAINYARD_TRANSPORT"
PROGRESS_SECONDS = 5.0
_LOOK_SECONDS = 0.25
_TAIL = 16384
_DEEPEST = 10
_LONGEST_BAR = 200


@dataclass
class Status:
    """What is known of this node, and when the others were last told. `culprit` is the rank whose failure ended it.

    `bar`: the line that its processes draw over and over, as it stood then. `transport`: how data goes between
    machines, where the platform chose it. `lost`: files that nobody
    keeps (launcher/losses.py).
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
    lost: Any = None
    at: str = ""


@dataclass
class StatusReporter:
    """Keeps the status object up to date. Without a desk there is nobody to tell."""

    launch: Launch
    desk: Desk | None
    progress_file: str
    bar: Callable[[], str] = lambda: ""
    transport: str = ""
    _status: Status = field(init=False)
    _started: float = field(default=0.0, init=False)
    _looked: float = field(default=0.0, init=False)
    _told: float = field(default=0.0, init=False)
    _size: int = field(default=-1, init=False)

    def __post_init__(self) -> None:
        self._status = Status(self.launch.rank, self.launch.node, self.launch.role, transport=self.transport)

    def change(self, **changes: Any) -> None:
        """Something others will want to know at once."""
        for name, value in changes.items():
            setattr(self._status, name, value)
        self._tell()

    def begin(self) -> None:
        """The command is about to start: what it adds to the file from now on is its progress."""
        self._size = self._file_size()

    def started(self) -> None:
        """The command runs from now on. By now it may have written a line."""
        self._started = time.monotonic()
        self.change(state="running", tries=self._status.tries + 1, code=None, reason="", culprit=None, ranSeconds=None)

    def idle(self, why: str) -> None:
        """The node does nothing, or again something where `why` is empty."""
        self.change(reason=why)

    def tick(self) -> None:
        """Looks whether the script has written down progress, or moved its progress bar."""
        now = time.monotonic()
        if self.desk is None or now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        first = self._status.firstStepSeconds is None
        if not first and now - self._told < PROGRESS_SECONDS:
            return
        size = self._file_size()
        line = self._last_line() if size != self._size else None
        if line is None:
            self._tell_bar(now)
            return
        self._size = size
        if first:
            self._status.firstStepSeconds = round(now - self._started, 3)
        self.change(progress=line)

    def _tell_bar(self, now: float) -> None:
        bar = self.bar()[:_LONGEST_BAR]
        if bar != self._status.bar and now - self._told >= PROGRESS_SECONDS:
            self.change(bar=bar)

    def _file_size(self) -> int:
        try:
            return os.stat(self.progress_file).st_size
        except OSError:
            return -1

    def _last_line(self) -> Any:
        """The last whole line as JSON; None while there is none."""
        try:
            with open(self.progress_file, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
                lines = file.read().split(b"\n")[:-1]
            return finite(json.loads(lines[-1])) if lines else None
        except (OSError, ValueError, RecursionError):
            return None

    def last(self) -> None:
        """What was written in the very end is told too, and how long the command ran: the first call is nearest."""
        if self._started and self._status.ranSeconds is None:
            self._status.ranSeconds = round(time.monotonic() - self._started, 3)
        self._looked, self._told = 0.0, 0.0
        self.tick()

    def _tell(self) -> None:
        self._told = time.monotonic()
        self._status.at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        if self.desk is not None:
            self.desk.post(f"status/{self.launch.rank}.json", asdict(self._status))


def finite(value: Any, depth: int = 0) -> Any:
    """What a script wrote, as JSON: `NaN` and the like become words, and what is nested without end is cut."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, (dict, list)) and depth == _DEEPEST:
        return "…"
    if isinstance(value, dict):
        return {key: finite(item, depth + 1) for key, item in value.items()}
    return [finite(item, depth + 1) for item in value] if isinstance(value, list) else value
