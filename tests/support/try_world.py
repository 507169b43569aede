# SPDX-License-Identifier: Apache-2.0
"""A stack that is up, for tests of `trainyard run`: jobs of one node, of two, as node groups, and without runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from schemas.model import NOTHING
from tests.support.cloud_fixture import Clients
from tests.support.local_team import LONGEST_SECONDS, ROOT, Team
from tests.support.waiting import eventually

# Prints its arguments and environment and writes them to its output. With `--wait`, it then waits until the file `ends`
# is in HOME; with `--bar`, it draws a progress bar meanwhile. With `--leave`, node 0 waits in the same way, and then
# fails as if it had lost the others. With `--hog`, node 1 takes more memory than it has, and node 0 waits for it.
SCRIPT = """
import os, pathlib, sys, time
given = f"args {sys.argv[1:]} colour {os.environ.get('COLOUR')} place {os.environ.get('PLACE')}"
print(given, "peers", os.environ.get("PEERS"), flush=True)
(pathlib.Path(os.environ["TRAINYARD_OUTPUT"]) / "given.txt").write_text(given)
end = time.monotonic() + 600
node, ends = os.environ.get("NODE"), pathlib.Path.home() / "ends"
waits = {*sys.argv} & ({"--wait", "--leave", "--hog"} if node == "0" else {"--wait"})
while waits and not ends.exists() and time.monotonic() < end:
    time.sleep(0.05)
    if "--bar" in sys.argv:
        print(end=f"\\r{time.monotonic():.2f} s \x1b[32m\u2588\x1b[0m left \u2588\u2588", flush=True)
if "--bar" in sys.argv:
    print("\\rwhole\x1b[K")
if "--leave" in sys.argv and node == "0":
    sys.exit("RuntimeError: Connection closed by peer")
if "--hog" in sys.argv and node == "1":
    print(len(b"x" * (2 << 30)))
"""
PAIR = """
name = "pair"
summary = "two nodes that meet"
rank = "main is rank 0"
gang = true
[roles.main]
minimum = 1
maximum = 1
mode = "MAIN"
why = "the first"
runs_command = true
[roles.worker]
minimum = 1
mode = "WORKER"
why = "the other"
runs_command = true
[environment]
PEERS = "{addresses.main},{addresses.worker}"
NODE = "{rank}"
"""
_JOB = {
    "image": "${registry}:1.0",
    "shape": {"name": "VM.Standard.E4.Flex", "ocpus": 1, "memoryGb": 8},
    "code": "./local",
    "command": "train.py --epochs 5",
    "maximumRuntimeMinutes": 60,
}
_SMALL = {"name": "VM.Standard.E4.Flex", "ocpus": 1, "memoryGb": 1}
_TWO = {**_JOB, "shape": _SMALL, "framework": "pair", "roles": {"main": 1, "worker": 1}}


def jobs() -> dict[str, Any]:
    env = {"COLOUR": "red", "PLACE": "${job}/${run}"}
    runs = {
        "base": {"args": ["--lr", "0.1"], "until": "finished"},
        "tuned": {"env": {"COLOUR": "blue"}, "until": "accepted"},
    }
    return {
        "line": {**_JOB, "framework": "script", "roles": {"main": 1}, "env": env, "runs": runs},
        "pair": {**_TWO, "runs": {"base": {"until": "accepted"}}},
        "groups": {**_TWO, "layout": "node-groups", "runs": {"base": {"until": "accepted"}}},
        "idle": {**_JOB, "framework": "script", "roles": {"main": 1}, "env": env},
    }


class TryTeam(Team):
    """A team whose stack `local` has these jobs."""

    def __init__(self, root: Path, wanted: Mapping[str, Any] | None = None) -> None:
        super().__init__(root)
        (self.stacks / "local" / "train.py").write_text(SCRIPT)
        (self.stacks / "local" / "pair.toml").write_text(PAIR)
        self.configure("frameworks", {"script": "./local/script.toml", "pair": "./local/pair.toml"})
        self.configure("jobs", jobs() if wanted is None else wanted)

    @property
    def clients(self) -> Clients:
        return Clients(self.cloud)

    def try_(self, job: str, *words: str, env: Mapping[str, str] = NOTHING) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(job, *words), cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_SECONDS,
            env=self.environment(env),
        )  # fmt: skip

    def words(self, job: str, *words: str) -> list[str]:
        place = ["--local", "--stacks", str(self.stacks)]
        return [sys.executable, "-m", "trainyard", "run", "local", job, *place, *words]

    def environment(self, more: Mapping[str, str] = NOTHING) -> dict[str, str]:
        return {**os.environ, "TRAINYARD_HOME": str(self.home), "PULUMI_OPTION_COLOR": "never", **more}

    def started(self, job: str, *words: str) -> str:
        """Starts a try, and returns its name while it still runs."""
        done = self.try_(job, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def job_runs(self, title: str) -> list[Any]:
        job, _, run = title.partition("/")
        runs = self.clients.data_science.list_job_runs(self.cloud.compartment).data
        own = [one for one in runs if (one.freeform_tags.get("job"), one.freeform_tags.get("run")) == (job, run)]
        return sorted(own, key=lambda one: one.freeform_tags.get("trainyard-node", ""))

    def states(self, title: str) -> set[str]:
        return {run.lifecycle_state for run in self.job_runs(title)}

    def alive(self, title: str) -> list[Any]:
        """Waits until all its job runs train, and returns them."""
        eventually(lambda: self.states(title), lambda states: states == {"IN_PROGRESS"})
        return self.job_runs(title)

    def finish(self, title: str) -> None:
        for run in self.job_runs(title):
            for home in (self.cloud.home / "runs" / run.id).glob("node-[0-9]"):
                (home / "ends").touch()

    def outputs(self, title: str) -> dict[str, str]:
        """Name -> content of its script's output files in the bucket."""
        cloud, storage, bucket = self.cloud, self.clients.storage, "demo-local-training"
        names = storage.list_objects(cloud.namespace, bucket, prefix=f"{title}/").data.objects
        return {
            item.name: storage.get_object(cloud.namespace, bucket, item.name).data.text
            for item in names
            if "/output/" in item.name
        }


@contextmanager
def try_team(root: Path, wanted: Mapping[str, Any] | None = None) -> Iterator[TryTeam]:
    team = TryTeam(root, wanted)
    try:
        yield team
    finally:
        team.end()
