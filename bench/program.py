# SPDX-License-Identifier: Apache-2.0
"""Our Pulumi program for OCI and for AWS with 10 and 1,000 runs, against flat programs with the same resources."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.harness.rows import ROOT, TURNS, Aim, Row, in_turns
from bench.programs import stacks
from bench.programs.flat import describe
from tests.support.recorder.client import Client

# The cloud's SDK, the number of jobs, and the number of runs in all of them together.
SIZES = (("oci", 1, 10), ("oci", 1, 1000), ("oci", 10, 1000), ("aws", 1, 10), ("aws", 1, 1000))
AIM = Aim("ratio", 1.15)
# A run between 500 and 1,000 must take no longer than one between 10 and 500, with a fifth for noise.
GROWTH = Aim("ratio", 1.2)
Times = Mapping[str, float]


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="trainyard-bench-") as place, Client() as client:
        bench = Bench(Path(place), client)
        return [*(line for size in SIZES for line in bench.compared(*size)), bench.growth()]


@dataclass(frozen=True)
class Bench:
    folder: Path
    client: Client

    def compared(self, sdk: str, jobs: int, runs: int) -> Iterator[Row]:
        file = stacks.write(self.folder, jobs, runs, sdk)
        flat = self.folder / f"flat-{sdk}-{jobs}-{runs}.json"
        flat.write_text(json.dumps(describe(self.client.record(file, self.folder))), "utf-8")
        whole, ours, peer, even = in_turns(
            lambda: self._once("ours-lean", sdk, file),
            lambda: self._once("ours", sdk, file),
            lambda: self._once("flat", sdk, flat),
            lambda: self._once("flat-uncollected", sdk, flat),
        )
        size = f"{sdk}: {jobs} job{'s'[: jobs > 1]}, {runs:,} runs"
        yield _row(f"{size}, imports too", "flat program", _whole(whole), _whole(peer), AIM)
        yield _row(f"{size}", "flat program", _program(ours), _program(peer), AIM)
        yield _row(f"{size}, collector off in both", "flat program", _program(ours), _program(even), AIM)

    def growth(self) -> Row:
        taken = {}
        for runs in (10, 500, 1000):
            file = stacks.write(self.folder, 1, runs)
            taken[runs] = statistics.median(self._once("ours", "oci", file)["program"] for _ in range(TURNS))
        late, early = (taken[1000] - taken[500]) / 500, (taken[500] - taken[10]) / 490
        return Row(
            "a run more, from 500 on", late * 1e3, "ms", "a run more, up to 500", early * 1e3, late / early, GROWTH
        )

    def _once(self, which: str, sdk: str, file: Path) -> Times:
        command = [sys.executable, "-m", "bench.programs.once", which, sdk, str(file), str(self.folder)]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        times: Times = json.loads(done.stdout)
        return times


def _whole(times: Sequence[Times]) -> list[float]:
    return [one["imports"] + one["program"] for one in times]


def _program(times: Sequence[Times]) -> list[float]:
    return [one["program"] for one in times]


def _row(name: str, against: str, ours: Sequence[float], peer: Sequence[float], aim: Aim) -> Row:
    """Processor seconds: medians, and the median of the pairs' ratios."""
    ratio = statistics.median(one / other for one, other in zip(ours, peer, strict=True))
    return Row(name, statistics.median(ours), "s", against, statistics.median(peer), ratio, aim)
