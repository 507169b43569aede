# SPDX-License-Identifier: Apache-2.0
"""`pulumi up`, an `up` that changes nothing, and `destroy` on the local cloud, against a floor with the same engine.

The floor is a flat program with as many resources (components included), without dependencies, whose provider does
nothing. Both are plain `pulumi` without a policy pack, with the same arguments and environment, alternately. All
figures are wall time, because a user waits for that. `up` waits only until runs are accepted: training is not measured.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from bench.harness.rows import ROOT, Aim, Row, in_turns
from components.oci.client.buckets import empty_bucket
from components.oci.client.session import DEPLOYER, session_of
from localcloud import admin
from tests.support.cloud_world import TERMINAL
from tests.support.local_team import Team
from tests.support.waiting import eventually
from trainyard.engine.tools import plugin_path, stand_ins

NOTHING = ROOT / "bench" / "programs" / "nothing"
# Jobs without runs: together with the resources of the stack `local` they make 200 resources.
JOBS = 92
AIM = Aim("ratio", 2.0)
LATENCY, LATENCY_AIM = 0.2, Aim("ratio", 1.3)
COLD_AIM = Aim("ratio", 1.3)
LONGEST_SECONDS = 240
QUIET = ("--non-interactive", "--skip-preview", "--yes")
# The resource type to which a call's type belongs; other calls name it themselves. Calls for work requests are left
# out, which only shortens the chain.
OWNERS = {"JobArtifact": "Job", "JobRun": "Run", "JobRuns": "Run", "ContainerImages": "Run"}
_CALL = re.compile(r"ms [A-Z][a-z]+(\w+)")
Took = dict[str, list[float]]


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="trainyard-bench-") as place, ExitStack() as stack:
        local, many = (_team(Path(place) / name, stack) for name in ("local", "many"))
        local.change("until: finished", "until: accepted")
        only_jobs(many)
        return [*Pair(local, turns=3).rows(slow=True), *Pair(many, turns=2).rows(slow=False), _cold_start(local)]


def _team(root: Path, stack: ExitStack) -> Team:
    team = Team(root)
    stack.callback(team.end)
    return team


def only_jobs(team: Team) -> None:
    """Makes the stack of `make up` one of 200 resources, components counted."""
    (job,) = yaml.safe_load(team.file.read_text("utf-8"))["config"]["trainyard:jobs"].values()
    del job["runs"]
    team.configure("jobs", {f"job-{number}": job for number in range(JOBS)})


@dataclass
class Stack:
    """One stack, and the times of each command on it."""

    words: Sequence[str]
    folder: Path
    env: Mapping[str, str]
    took: Took = field(default_factory=dict)

    def time(self, what: str, command: str, *words: str) -> None:
        start = time.perf_counter()
        done = subprocess.run(
            ["pulumi", command, *QUIET, *words, *self.words],
            cwd=self.folder, env=dict(self.env), capture_output=True, text=True, timeout=LONGEST_SECONDS,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{what}: {done.stdout}{done.stderr}")
        self.took.setdefault(what, []).append(time.perf_counter() - start)


class Pair:
    """A stack of ours that is up, and a floor of the same size."""

    def __init__(self, team: Team, turns: int) -> None:
        self._team, self._turns, self._ups = team, turns, 0
        self._cloud = team.cloud
        self._whole = _seconds(lambda: team.trainyard("up", "local"))
        self._resources = [one for one in team.resources() if not one["type"].startswith("pulumi:")]
        copy = team.home / "pulumi" / "stacks" / team.file.name
        env = team.env({"TRAINYARD_STACKS": str(team.stacks), "GRPC_VERBOSITY": "NONE"})
        self._ours = Stack(("--stack", "local", "--config-file", str(copy)), ROOT, env)
        self._floor = Stack(("--stack", "floor"), _floor(team.home.parent / "floor", env, len(self._resources)), env)
        self._chains: list[float] = []

    def rows(self, slow: bool) -> Iterator[Row]:
        self._floor.time("set-up", "up")
        for _ in range(self._turns):
            self._turn()
            if slow:
                self._slow_up()
        size = f"{len(self._resources)} resources"
        for what, ours in self._ours.took.items():
            if what in self._floor.took:
                yield _row(f"{what}, {size}", "nothing", ours, self._floor.took[what], AIM)
        yield _row(
            f"first `trainyard up`, policies judged, {size}", "nothing", [self._whole], self._floor.took["set-up"]
        )
        if slow:
            plain, slowed = self._ours.took["up"], self._ours.took["slow up"]
            added = [one - other for one, other in zip(slowed, plain, strict=True)]
            yield _row(f"up, {LATENCY:g} s added to every call", "chain of calls", slowed, self._chains, LATENCY_AIM)
            yield _row("what the added seconds add to up", "chain of calls", added, self._chains, LATENCY_AIM)

    def _turn(self) -> None:
        """One round: from `up` through `destroy` to `up` again, each step for ours and for the floor."""
        for what, *words in (("no-op up", "up", "--expect-no-changes"), ("destroy", "destroy")):
            self._empty()
            self._ours.time(what, *words)
            self._floor.time(what, *words)
        self._up("up")
        self._floor.time("up", "up")

    def _up(self, what: str) -> None:
        # A new name each time: the cloud remembers earlier requests by their retry tokens, and refuses to repeat them.
        self._ups += 1
        self._ours.time(what, "up", "--config", f"trainyard:team=demo-{self._ups}")

    def _empty(self) -> None:
        """Empties the bucket, because `destroy` fails on a bucket that runs have written to. `down` would empty it."""
        session, cloud = session_of(self._cloud, DEPLOYER), self._cloud
        science, storage = session.client("data_science"), session.client("object_storage")
        eventually(lambda: [run.lifecycle_state for run in science.list_job_runs(cloud.compartment).data],
                   lambda states: set(states) <= TERMINAL, LONGEST_SECONDS)  # fmt: skip
        for bucket in storage.list_buckets(cloud.namespace, cloud.compartment).data:
            empty_bucket(session, print, cloud.namespace, bucket.name)

    def _slow_up(self) -> None:
        self._empty()
        self._ours.time("destroy before a slow up", "destroy")
        log = self._cloud.home / "server.log"
        begins = log.stat().st_size
        admin.add_fault(self._cloud, "latency", seconds=LATENCY)
        try:
            self._up("slow up")
        finally:
            admin.clear_faults(self._cloud)
        self._chains.append(LATENCY * longest_chain(self._resources, log.read_bytes()[begins:].decode()))


def longest_chain(resources: Sequence[Mapping[str, Any]], log: str) -> float:
    """The longest chain of dependent resources, in seconds of calls. The program's function calls are left out."""
    calls = Counter(OWNERS.get(noun, noun) for noun in _CALL.findall(log))
    kinds = Counter(_kind(one) for one in resources)
    known = {one["urn"]: one for one in resources}
    ends: dict[str, float] = {}

    def end(urn: str) -> float:
        if urn not in ends:
            one = known[urn]
            before = (end(other) for other in one.get("dependencies") or () if other in known)
            ends[urn] = max(before, default=0.0) + (calls[_kind(one)] / kinds[_kind(one)] if one["custom"] else 0.0)
        return ends[urn]

    return max(map(end, known))


def _kind(one: Mapping[str, Any]) -> str:
    """The last part of a resource's type: `Vcn`. Empty for components, which make no calls."""
    return str(one["type"]).rpartition(":")[2] if one["custom"] else ""


def _floor(folder: Path, env: Mapping[str, str], resources: int) -> Path:
    folder.mkdir()
    shutil.copy(NOTHING / "program.py", folder / "__main__.py")
    project = {
        "name": "floor",
        "runtime": {"name": "python", "options": {"virtualenv": sys.prefix}},
        "plugins": {"providers": [{"name": "nothing", "path": str(NOTHING)}]},
    }
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump(project), "utf-8")
    for words in (("stack", "init", "floor"), ("config", "set", "resources", str(resources), "--stack", "floor")):
        subprocess.run(
            ["pulumi", *words, "--non-interactive"], cwd=folder, env=dict(env), check=True, capture_output=True
        )
    return folder


def _row(name: str, against: str, ours: Sequence[float], floor: Sequence[float], aim: Aim | None = None) -> Row:
    """A row with the medians, and the median of the pairs' ratios."""
    ratio = statistics.median(one / other for one, other in zip(ours, floor, strict=True))
    return Row(name, statistics.median(ours), "s", against, statistics.median(floor), ratio, aim)


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _cold_start(team: Team) -> Row:
    """The time until the plugin, started as by the engine, prints its port. The floor prints after its imports."""
    imports = [sys.executable, "-u", "-c", "import localcloud.oci.plugin.plugin, provider.base.serve; print(0)"]
    plugin = plugin_path(team.home, next(one for one in stand_ins() if one.provider == "oci"))
    ours, floor = in_turns(lambda: _first_word([str(plugin)]), lambda: _first_word(imports))
    return _row("cold start of the plugin", "the same imports", ours, floor, COLD_AIM)


def _first_word(command: Sequence[str]) -> float:
    start = time.perf_counter()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline().strip().isdigit()
            return time.perf_counter() - start
        finally:
            process.terminate()
