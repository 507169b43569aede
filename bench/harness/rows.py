# SPDX-License-Identifier: Apache-2.0
"""A bench's result as values, and how pairs are measured: in turns, so that a busy moment falls on both."""

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
    """At most `limit`, of the figure itself or of its ratio."""

    of: Literal["figure", "ratio"]
    limit: float

    def __str__(self) -> str:
        return f"{self.of} <= {self.limit:g}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line: what it took, what the floor or peer took in the same run, and what was aimed at."""

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
        told = {name: getattr(self, name) for name in ("name", "figure", "unit", "against", "floor", "ratio")}
        return {**told, "aim": None if self.aim is None else str(self.aim), "met": self.met}


@dataclass(frozen=True, slots=True)
class Spent:
    """What a process took: seconds of the clock, and of the processor, which other work on the machine hardly moves."""

    clock: float
    processor: float


def process_row(name: str, against: str, ours: Sequence[Spent], floor: Sequence[Spent], aim: Aim | None = None) -> Row:
    """The best of the clock, as the least disturbed; the ratio is the median of the pairs' processor seconds."""
    ratio = statistics.median(one.processor / other.processor for one, other in zip(ours, floor, strict=True))
    best, other = min(one.clock for one in ours), min(one.clock for one in floor)
    return Row(name, best, "s", against, other, ratio, aim)


def in_turns(*calls: Callable[[], Result]) -> list[list[Result]]:
    """A B A B …, after one of each that is not counted; what each call gave."""
    turns = [[call() for call in calls] for _ in range(TURNS + 1)][1:]
    return [list(given) for given in zip(*turns, strict=True)]


def spent(command: Sequence[str]) -> Spent:
    """A whole process, from the project's folder."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Spent(clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
