# SPDX-License-Identifier: Apache-2.0
"""The first `pulumi preview` of the stack of `make up`, against a flat program with the same resources.

Both run alternately, with the same engine, plugins and local cloud. The flat program consists of plain calls of
pulumi_oci, without a policy pack. Ours is measured without the policy pack and with it.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import yaml

from bench.harness.rows import ROOT, Aim, Row, Spent, in_turns, process_row
from bench.programs.flat import describe
from tests.support.local_team import Team
from tests.support.recorder.client import Client

PLAIN_AIM, JUDGED_AIM = Aim("ratio", 0.8), Aim("ratio", 1.0)
LONGEST_SECONDS = 240
PACK = ("--policy-pack", str(ROOT / "policies"))
PROGRAM = """\
import sys
from pathlib import Path

sys.path.insert(0, {root!r})
from bench.programs.flat import load

load(Path("flat.json").read_text("utf-8")).run()
"""


@dataclass(frozen=True)
class Program:
    """A Pulumi program and its stack."""

    folder: Path
    env: Mapping[str, str]
    words: Sequence[str]

    def preview(self, *more: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["pulumi", "preview", "--non-interactive", *self.words, *more],
            cwd=self.folder, env=dict(self.env), capture_output=True, text=True, timeout=LONGEST_SECONDS,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"preview in {self.folder}: {done.stdout}{done.stderr}")
        return done

    def spent(self, *more: str) -> Spent:
        """A whole preview, with the processor time of all processes that the engine started."""
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        self.preview(*more)
        clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        return Spent(clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    def makes(self) -> Counter[str]:
        """How many resources of each type it makes in a cloud."""
        states = [step["newState"] for step in json.loads(self.preview("--json").stdout)["steps"]]
        tokens = [state["type"] for state in states if state["custom"]]
        return Counter(token for token in tokens if not token.startswith("pulumi:"))


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="trainyard-bench-") as place, ExitStack() as stack:
        team = Team(Path(place), shipped=True)
        stack.callback(team.end)
        ours = program_of(team)
        flat = _flat(Path(place) / "flat", team, stack_file(team), ours.env)
        made = ours.makes()
        if made != flat.makes():
            raise RuntimeError(f"the programs make different resources: {made}, {flat.makes()}")
        plain, judged, peer = in_turns(ours.spent, lambda: ours.spent(*PACK), flat.spent)
        size = f"{made.total()} resources"
        return [*_rows(size, plain, peer, PLAIN_AIM), *_rows(f"{size}, policies judged", judged, peer, JUDGED_AIM)]


def stack_file(team: Team) -> Path:
    """The copy of the stack file that the commands give to Pulumi."""
    return team.home / "pulumi" / "stacks" / team.file.name


def program_of(team: Team) -> Program:
    """Our program on the team's stack, which is not there yet."""
    team.trainyard("preview", "local")
    env = team.env({"TRAINYARD_STACKS": str(team.stacks), "GRPC_VERBOSITY": "NONE"})
    return Program(ROOT, env, ("--stack", "local", "--config-file", str(stack_file(team))))


def _flat(folder: Path, team: Team, copy: Path, env: Mapping[str, str]) -> Program:
    """The flat program of the same stack."""
    folder.mkdir()
    written = team.stacks / "Pulumi.flat.yaml"
    written.write_bytes(copy.read_bytes())
    with Client() as client:
        description = describe(client.record(written, folder, home=team.cloud.region))
    (folder / "flat.json").write_text(json.dumps(description), "utf-8")
    (folder / "__main__.py").write_text(PROGRAM.format(root=str(ROOT)), "utf-8")
    project = {
        "name": "flat",
        "runtime": {"name": "python", "options": {"virtualenv": sys.prefix}},
        "plugins": {"providers": [{"name": "trainyard", "path": str(ROOT / "provider")}]},
    }
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump(project), "utf-8")
    command = ["pulumi", "stack", "init", "flat", "--non-interactive"]
    subprocess.run(command, cwd=folder, env=dict(env), check=True, capture_output=True)
    return Program(folder, env, ("--stack", "flat", "--config-file", str(copy)))


def _rows(name: str, ours: Sequence[Spent], peer: Sequence[Spent], aim: Aim) -> list[Row]:
    """The aim is for processor seconds, on which other work has little effect. A second row has the wall time."""
    clocks = [one.clock for one in ours], [one.clock for one in peer]
    ratio = statistics.median(one / other for one, other in zip(*clocks, strict=True))
    middle, other = map(statistics.median, clocks)
    clock = Row(f"{name}, by the clock", middle, "s", "flat program", other, ratio)
    return [process_row(name, "flat program", ours, peer, aim), clock]
