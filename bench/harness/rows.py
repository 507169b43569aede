# SPDX-License-Identifier: Apache-2.0
"""Rows of results, and measurement of pairs: alternately, so that a busy moment affects both."""

from __future__ import annotations

import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

ROOT = Path(__file__).parents[2]
TURNS = 5
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Aim:
    """The aim of a row: its figure, or its ratio, is at most `limit`."""

    of: Literal["figure", "ratio"]
    limit: float

    def __str__(self) -> str:
        return f"{self.of} <= {self.limit:g}"


@dataclass(frozen=True, slots=True)
class Row:
    """One result: our figure, that of the floor or peer in the same run, and the aim."""

    name: str
    figure: float
    unit: str
    against: str
    floor: float
    ratio: float
    aim: Aim | None = None

    @property
    def met(self) -> bool | None:
        return None if self.aim is None else getattr(self, self.aim.of) <= self.aim.limit

    def plain(self) -> dict[str, Any]:
        columns = {name: getattr(self, name) for name in ("name", "figure", "unit", "against", "floor", "ratio")}
        return {**columns, "aim": None if self.aim is None else str(self.aim), "met": self.met}


@dataclass(frozen=True, slots=True)
class Spent:
    """A process's wall time (`clock`) and processor time, in seconds. Other work hardly affects processor time."""

    clock: float
    processor: float


def process_row(name: str, against: str, ours: Sequence[Spent], floor: Sequence[Spent], aim: Aim | None = None) -> Row:
    """The figure is the shortest wall time, the least disturbed one. The ratio is the median over the pairs' processor
    time."""
    ratio = statistics.median(one.processor / other.processor for one, other in zip(ours, floor, strict=True))
    best, other = min(one.clock for one in ours), min(one.clock for one in floor)
    return Row(name, best, "s", against, other, ratio, aim)


def in_turns(*calls: Callable[[], Result]) -> list[list[Result]]:
    """Calls A, B, A, B and so on, after one uncounted call of each. Returns the results of each."""
    turns = [[call() for call in calls] for _ in range(TURNS + 1)][1:]
    return [list(given) for given in zip(*turns, strict=True)]


def spent(command: Sequence[str]) -> Spent:
    """Runs a command in the project's folder, and measures the whole process."""
    return spent_by(lambda: subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL))


def spent_by(call: Callable[[], object]) -> Spent:
    """Measures the processes that a call starts and waits for."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    call()
    clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Spent(clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
