# SPDX-License-Identifier: Apache-2.0
"""Changes that are made without Pulumi, each with a function that undoes it, and `trainyard drift` as a person types
it."""

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
    """`make` changes a resource and returns a function that undoes the change. `seen`: words that the finding must
    contain.
    """

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
        """A resource of its state, by the last word of its type and its name. Components are left out, because they may
        have the same type and name."""
        rows = (row for row in self.state if row.get("id") and row["urn"].endswith(f":{kind}::{name}"))
        return next(rows)

    def id_of(self, kind: str, name: str) -> str:
        return str(self.row(kind, name)["id"])

    def drift(self, *more: str) -> tuple[int, str]:
        """The exit code and the output of the command."""
        done = CliRunner().invoke(main, ["drift", self.name, "--home", str(self.cloud.home), *more])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output

    def is_silent(self) -> None:
        code, said = self.drift()
        assert (code, said.count("\n")) == (0, 1), said

    def stays_silent(self) -> None:
        """Asserts that repeated commands report no drift of an unchanged stack."""
        for _ in range(wanted(1, 100)):
            self.is_silent()

    def finds(self, change: BehindTheBack) -> None:
        """Asserts that the command shows this change and no other, and after the undo nothing."""
        undo = change.make()
        try:
            code, said = self.drift()
        finally:
            undo()
        assert code == 1, f"{change.title}: not found\n{said}"
        assert all(word in said for word in change.seen), f"{change.title}: {change.seen}\n{said}"


def turn(put: Callable[[Any], object], now: Any, before: Any) -> Undo:
    """Sets one value, and returns a function that sets the other."""
    put(now)
    return lambda: put(before)


def stack_up(name: str, home: Path, cloud: Cloud) -> StackUp:
    file = home / "pulumi" / "state" / ".pulumi" / "stacks" / "trainyard" / f"{name}.json"
    return StackUp(name, cloud, json.loads(file.read_text())["checkpoint"]["latest"]["resources"])


def some(makers: Sequence[Callable[[random.Random], BehindTheBack]], sample: int, full: int) -> list[BehindTheBack]:
    """A selection of changes by the seed: first one of each kind, as many as fit, then more of them with other
    values."""
    seed = int(os.environ.get("TRAINYARD_SEED") or FIRST or 1)
    chance, count = random.Random(seed), wanted(sample, full)
    rounds = -(-count // len(makers))
    return [maker(chance) for maker in chance.sample(list(makers) * rounds, count)]
