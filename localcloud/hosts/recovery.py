# SPDX-License-Identifier: Apache-2.0
"""Cleans up a run of a killed cloud: ends its remaining processes, and reads their results."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from localcloud import files

_TURN_SECONDS = 0.05
Results = dict[int, dict[str, Any]]


async def end_processes(folder: Path) -> Results:
    """Ends a run's remaining processes. Returns by rank the results of nodes that had ended by themselves."""
    for pid, started in _supervisors(folder):
        if files.is_same(pid, started):
            os.kill(pid, signal.SIGTERM)
    # A supervisor gives its command some time to end, and then ends in any case.
    while any(files.is_same(pid, started) for pid, started in _supervisors(folder)):
        await asyncio.sleep(_TURN_SECONDS)
    return dict(_by_themselves(folder))


def _supervisors(folder: Path) -> Iterator[tuple[int, str]]:
    for path in folder.glob("node-*.pid"):
        if identity := json.loads(path.read_text() or "{}"):
            yield identity["pid"], identity["started"]


def _by_themselves(folder: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for path in folder.glob("node-*.result"):
        result = json.loads(path.read_text())
        if result["reason"] != "stopped":  # otherwise it ended because of the cloud's end
            yield int(path.stem.removeprefix("node-")), result
