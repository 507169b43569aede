# SPDX-License-Identifier: Apache-2.0
"""A stack on which `up` is repeated with another argument each time, and checks of the result of every start.

The stack has a job for each number of nodes, so one `up` replaces a run of each. The scripts are under `starts/` beside
this file. Rank 0 prints a line for each step, with the loss and the number of workers.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import oci
import pytest

from catalog.environments import Need
from catalog.imports import imported_modules
from localcloud.environments.find import MissingEnvironment, find_environment_for
from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import World
from tests.support.local_team import Team
from tests.support.up_beside import kill, up_beside
from tests.support.waiting import eventually

T = TypeVar("T")
CODE = Path(__file__).with_name("starts")
# The same numbers as in the scripts.
STEPS, HALF = 6, 3
# An idle machine needs a tenth of it. What takes longer is a failure.
LONGEST_SECONDS = 300.0
# So many steps that the run does not end by itself. Each step takes long enough not to fill the log.
_HELD = ("--steps", "100000", "--pause", "0.2")


@dataclass(frozen=True)
class Kind:
    """A framework with its strategy, and the roles of its jobs by their number of nodes."""

    framework: str
    roles: Callable[[int], Mapping[str, int]]
    strategy: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    sizes: Sequence[int] = (2, 3)
    # Kinds whose losses must be the same as those of a run that was not replaced. For the others, only ranks and number
    # of nodes are checked.
    deterministic: bool = True


def _workers(nodes: int) -> Mapping[str, int]:
    return {"main": 1, "worker": nodes - 1}


_PINNED = {"ports": {"rendezvous": 29600, "data": "30000-30511"}}
KINDS = {
    "dask": Kind("dask", lambda nodes: {"scheduler": 1, "worker": nodes - 1}, more={"options": {"nanny": False}}),
    "pytorch": Kind("pytorch", _workers),
    "tensorflow": Kind("tensorflow", _workers, "multi-worker-mirrored"),
    # The smallest job has a chief, a worker and a server.
    "tensorflow-ps": Kind(
        "tensorflow", lambda nodes: {"main": 1, "worker": nodes - 2, "ps": 1}, "parameter-server",
        sizes=(3,), deterministic=False,
    ),
    "horovod-pytorch": Kind("horovod", _workers, "pytorch", _PINNED),
    "horovod-tensorflow": Kind("horovod", _workers, "tensorflow", _PINNED),
}  # fmt: skip


@dataclass(frozen=True)
class Change:
    """What the next `up` does: whether the run trains until it is replaced, uses checkpoints, and whether `up` is
    killed."""

    held: bool = False
    keep: bool = False
    killed: bool = False
    # After how many seconds `up` is killed, from the first job run of the new start.
    later: float = 0.0
    # The jobs that change, by number of nodes. None: all.
    sizes: Sequence[int] | None = None


class SecondRuns:
    """The stack of one kind, and the result of its first start."""

    def __init__(self, root: Path, name: str, sizes: Sequence[int] | None) -> None:
        kind = KINDS[name]
        self.kind, self._note = replace(kind, sizes=sizes or kind.sizes), 0
        code = CODE / name
        missing = find_environment_for(Need(self.kind.framework, self.kind.strategy, imported_modules(code)))
        if isinstance(missing, MissingEnvironment):
            pytest.skip(f"not rehearsed: the environment {missing.name}: {missing.reason}; {missing.remedy}")
        self.team = Team(root)
        shutil.copytree(code, self.team.stacks / "starts")
        shutil.copy(CODE / "steps.py", self.team.stacks / "starts")
        self._alone: dict[int, list[float]] = {}
        self._written: dict[int, Mapping[str, Any]] = {}
        self._kept = False

    @cached_property
    def world(self) -> World:
        return World(Clients(self.team.cloud))

    def begin(self) -> None:
        """Starts the runs for the first time, and waits for their end."""
        self._write(Change())
        self._up()
        for nodes, steps in self._steps(Change()).items():
            assert [step["step"] for step in steps] == list(range(1, STEPS + 1)), self.printed()
            self._alone[nodes] = [step["loss"] for step in steps]

    def replace(self, change: Change) -> None:
        """Changes the argument, runs `up`, and checks the result."""
        self._write(change)
        if change.killed:
            self._kill_up(change.later)
        self._up()
        first = HALF + 1 if change.keep and self._kept else 1
        for nodes, steps in self._steps(change).items():
            assert [step["step"] for step in steps] == list(range(first, STEPS + 1)), self.printed()
            losses = [step["loss"] for step in steps]
            if self.kind.deterministic:
                assert losses == self._alone[nodes][first - 1 :], f"{nodes} nodes: other losses than of a run alone"
        if change.keep and not self._kept:
            self._polled(self._checkpoints, lambda names: len(names) == len(self.kind.sizes))
            self._kept = True

    def _polled(self, read: Callable[[], T], accept: Callable[[T], bool]) -> T:
        """Waits for a condition, and shows the runs if it takes too long. It checks seldom, because each check is work
        for the cloud."""
        return eventually(read, accept, describe=self.printed, longest_pause=1.0)

    def printed(self) -> str:
        """The last lines of every node of the runs in Pulumi's state."""
        nodes = [node for run in self._runs().values() for node in run]
        return "\n".join(f"--- {node['name']} {node['id']}\n" + "\n".join(self._lines(node)[-20:]) for node in nodes)

    def _write(self, change: Change) -> None:
        self._note += 1
        words = [*(_HELD if change.held else ()), *(["--keep"] if change.keep else []), "--note", str(self._note)]
        run = {"args": words, "until": "started" if change.held else "finished"}
        self._written |= dict.fromkeys(self._changed(change), run)
        job = {
            "framework": self.kind.framework,
            **({"strategy": self.kind.strategy} if self.kind.strategy else {}),
            "image": "${registry}:1.0",
            "shape": {"name": "VM.Standard.E4.Flex", "ocpus": 1, "memoryGb": 8},
            "code": "./starts",
            "command": "train.py",
            **self.kind.more,
        }
        jobs = {f"of-{nodes}": {**job, "roles": dict(self.kind.roles(nodes)), "runs": {"base": written}}
                for nodes, written in self._written.items()}  # fmt: skip
        self.team.configure("jobs", jobs)

    def _changed(self, change: Change) -> Sequence[int]:
        return self.kind.sizes if change.sizes is None else change.sizes

    def _up(self) -> None:
        with up_beside(self.team) as up:
            try:
                code = up.wait(LONGEST_SECONDS)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"`up` hangs: {up.said()}\n{self.printed()}") from None
        assert code == 0, f"{up.said()}\n{self.printed()}"

    def _kill_up(self, later: float) -> None:
        """Kills `up` after the first job run of the new start exists, at once or later, but before `up` has ended."""
        before = self._made()
        with up_beside(self.team) as up:
            self._polled(self._made, lambda made: bool(made - before) or up.over)
            up.wait_at_most(later)
            assert not up.over or later, f"it was to be killed on its way: {up.said()}"
            family = up.family()
            kill(family)
            up.end(family)

    def _made(self) -> set[str]:
        listed = self.world.clients.data_science.list_job_runs
        return {run.id for run in oci.pagination.list_call_get_all_results(listed, self.world.compartment).data}

    def _runs(self) -> dict[int, list[dict[str, Any]]]:
        """Number of nodes -> the node runs of the start in Pulumi's state, in the order of ranks."""
        found = [row for row in self.team.resources() if row["type"] == "trainyard:index:Run"]
        runs = {int(re.findall(r"of-(\d)/base", row["urn"])[0]): row["outputs"]["nodeRuns"] for row in found}
        assert set(runs) == set(self.kind.sizes)
        return runs

    def _steps(self, change: Change) -> dict[int, list[dict[str, Any]]]:
        """Number of nodes -> the steps that rank 0 printed, up to the number of a run that is not replaced. Checks the
        ranks, too."""
        runs = self._runs()
        return {nodes: self._steps_of(nodes, runs[nodes]) for nodes in self._changed(change)}

    def _steps_of(self, nodes: int, run: list[dict[str, Any]]) -> list[dict[str, Any]]:
        def steps() -> list[dict[str, Any]]:
            told = re.findall(r"step (\{.*\})", "\n".join(self._lines(run[0])))
            return [step for step in map(json.loads, told) if step["step"] <= STEPS]

        made = self._polled(steps, lambda found: bool(found) and found[-1]["step"] == STEPS)
        assert {step["world"] for step in made} == {nodes}, self.printed()
        ids = sorted(node["id"] for node in run[1:])
        if self.kind.framework == "dask":
            assert {tuple(step["workers"]) for step in made} == {tuple(ids)}, "workers of another start"
        else:
            for rank, node in enumerate(run):
                assert f"here {rank} of {nodes}" in "\n".join(self._lines(node)), self.printed()
        return made

    def _lines(self, node: Mapping[str, Any]) -> list[str]:
        return self.world.lines(SimpleNamespace(**node))

    def _checkpoints(self) -> list[str]:
        bucket = (self.team.cloud.namespace, "demo-local-training")
        listed = self.world.clients.storage.list_objects(*bucket, prefix="of-", limit=1000).data.objects
        return [item.name for item in listed if item.name.endswith("/checkpoints/half.json")]


@contextmanager
def second_runs(root: Path, name: str, sizes: Sequence[int] | None = None) -> Iterator[SecondRuns]:
    """A stack whose runs have trained once, on these numbers of nodes or on those of the kind."""
    runs = SecondRuns(root, name, sizes)
    try:
        runs.begin()
        yield runs
    finally:
        runs.team.end()
