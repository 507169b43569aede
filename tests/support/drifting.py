# SPDX-License-Identifier: Apache-2.0
"""Changes behind a stack's back, each with its way back, and `trainyard drift` as a person types it."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from localcloud.control import Cloud
from tests.support.counts import FIRST, wanted
from trainyard.cli.main import main

Undo = Callable[[], object]


@dataclass(frozen=True)
class BehindTheBack:
    """`make` changes something and returns how it is taken back. `seen`: what a remark on it has to say."""

    title: str
    make: Callable[[], Undo]
    seen: Sequence[str]


@dataclass(frozen=True)
class StackUp:
    """A stack that is up on a local cloud."""

    name: str
    cloud: Cloud
    state: Sequence[Mapping[str, Any]]

    def row(self, kind: str, name: str) -> Mapping[str, Any]:
        """A resource of its state, by the last word of its type and its name. Components share both with others."""
        rows = (row for row in self.state if row.get("id") and row["urn"].endswith(f":{kind}::{name}"))
        return next(rows)

    def id_of(self, kind: str, name: str) -> str:
        return str(self.row(kind, name)["id"])

    def drift(self, *more: str) -> tuple[int, str]:
        """The exit code of the command, and all that it said."""
        done = CliRunner().invoke(main, ["drift", self.name, "--home", str(self.cloud.home), *more])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output

    def is_silent(self) -> None:
        code, said = self.drift()
        assert (code, said.count("\n")) == (0, 1), said

    def stays_silent(self) -> None:
        """However often it is asked, about what nobody touched."""
        for _ in range(wanted(1, 100)):
            self.is_silent()

    def finds(self, change: BehindTheBack) -> None:
        """It is shown while it is there, and nothing else is; then nothing is."""
        undo = change.make()
        try:
            code, said = self.drift()
        finally:
            undo()
        assert code == 1, f"{change.title}: not found\n{said}"
        assert all(word in said for word in change.seen), f"{change.title}: {change.seen}\n{said}"


def turn(put: Callable[[Any], object], now: Any, before: Any) -> Undo:
    """Puts one value, and gives back what puts the other."""
    put(now)
    return lambda: put(before)


def stack_up(name: str, home: Path, cloud: Cloud) -> StackUp:
    file = home / "pulumi" / "state" / ".pulumi" / "stacks" / "trainyard" / f"{name}.json"
    return StackUp(name, cloud, json.loads(file.read_text())["checkpoint"]["latest"]["resources"])


def some(makers: Sequence[Callable[[random.Random], BehindTheBack]], sample: int, full: int) -> list[BehindTheBack]:
    """Each kind once at least where there is room for it, then more of them with other values; by the seed."""
    seed = int(os.environ.get("TRAINYARD_SEED") or FIRST or 1)
    chance, count = random.Random(seed), wanted(sample, full)
    rounds = -(-count // len(makers))
    return [maker(chance) for maker in chance.sample(list(makers) * rounds, count)]
