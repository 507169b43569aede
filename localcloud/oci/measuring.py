# SPDX-License-Identifier: Apache-2.0
"""Measures job runs: reads from the kernel how much processor and memory the processes of each node use."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from localcloud import files
from localcloud.oci.operations import OciCloud
from localcloud.oci.services.metrics import MetricStream, dimensions_text, write_points
from localcloud.oci.store import StateStore, StoredResource
from localcloud.server import http

EVERY_SECONDS = 5.0
NAMESPACE = "oci_datascience_jobrun"
_UNITS = {"CpuUtilization": "percent", "MemoryUtilization": "percent"}
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
log = logging.getLogger("localcloud")


async def keep_measured(cloud: OciCloud) -> None:
    """Measures at intervals until it is cancelled."""
    meter = RunMeter(cloud.store, cloud.home / "runs")
    while True:
        try:
            meter.look()
        except (OSError, ValueError, sqlite3.Error):
            log.exception("measuring")  # such as a full disk, which may have space again next time
        await asyncio.sleep(EVERY_SECONDS)


@dataclass(frozen=True)
class ResourceUse:
    """A measurement of a run's processes: processor seconds so far, and bytes of memory."""

    at: float
    seconds: float
    memory: int


@dataclass
class RunMeter:
    """Measures runs. Processor use is the difference between two measurements."""

    store: StateStore
    folders: Path
    _before: dict[str, ResourceUse] = field(default_factory=dict)

    def look(self) -> None:
        now: dict[str, ResourceUse] = {}
        for run in self.store.select("kind = 'job-run' AND live AND state IN ('IN_PROGRESS', 'CANCELING')", ()):
            supervisors = list(_supervisors(self.folders / run.id))
            if supervisors:
                now[run.id] = _use(supervisors)
                if run.id in self._before:
                    self._write(run, _utilization(self._before[run.id], now[run.id]))
        self._before = now

    def _write(self, run: StoredResource, values: Mapping[str, float]) -> None:
        moment, dimensions = http.now(), dimensions_text({"resourceId": run.id})
        with self.store.transaction():
            for name, value in values.items():
                stream = MetricStream(run.compartment, NAMESPACE, "", name, dimensions)
                write_points(self.store, stream, [(moment, value, 1)], {"unit": _UNITS[name]})


def _utilization(before: ResourceUse, after: ResourceUse) -> dict[str, float]:
    """Percent of this machine."""
    passed = max(after.at - before.at, 0.001) * (os.cpu_count() or 1)
    total = os.sysconf("SC_PHYS_PAGES") * _PAGE
    used = max(0.0, after.seconds - before.seconds) / passed
    return {"CpuUtilization": min(100.0, 100 * used), "MemoryUtilization": 100 * after.memory / total}


def _supervisors(folder: Path) -> Iterator[int]:
    """The running supervisor of each node. All processes of the node are its descendants."""
    for path in folder.glob("node-*.pid"):
        identity = json.loads(path.read_text() or "{}")
        if identity and files.is_same(identity["pid"], identity["started"]):
            yield identity["pid"]


def _use(supervisors: list[int]) -> ResourceUse:
    seconds, memory, waiting = 0.0, 0, list(supervisors)
    at = time.monotonic()
    while waiting:
        pid = waiting.pop()
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            children = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
        except OSError:  # it ended meanwhile, and its parent's count includes it
            continue
        # The process's own seconds, and those of the children that it has reaped.
        seconds += sum(map(int, fields[11:15])) / _TICKS
        memory += int(fields[21]) * _PAGE
        waiting += (int(child) for text in children for child in text.split())
    return ResourceUse(at, seconds, memory)
