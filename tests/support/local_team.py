# SPDX-License-Identifier: Apache-2.0
"""A team with stack files and a home for local stacks, for tests of `trainyard up`."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import yaml

from localcloud import control
from schemas.model import NOTHING
from trainyard.engine.obtain import local_stack_environment

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "stacks"
ONE_NODE = Path(__file__).with_name("stacks")
# An idle machine needs a tenth of it.
LONGEST_SECONDS = 900.0
_LOCAL_CLOUD = re.compile(r"http://127\.0\.0\.1:\d+")
# An encrypted secret of a stack file. Only the key of that stack could decrypt it.
SEALED = {"secure": "v1:Yk9sYmFsbG9vbg==:2mVjdG9yc2VjcmV0"}
# Kinds of resource that a new tenancy has already, or that only record requests.
NOT_MADE = ("tenancy", "compartment", "group", "user", "user-group-membership", "image-standing-by", "work-request")


class Team:
    """A team with a repository of its own for the named stack files.

    Its stack `local` is the small one beside this file, or with `shipped` that of `make up`. `project`: the checkout or
    the release that the team uses. `python`: the interpreter of its environment.
    """

    def __init__(
        self, root: Path, *stacks: str, shipped: bool = False, project: Path = ROOT, python: str = sys.executable
    ) -> None:
        self.project, self.python = project, python
        self.stacks = root / "team" / "stacks"
        self.home = root / "home"
        own = SHIPPED if shipped else ONE_NODE
        shutil.copytree(SHIPPED / "examples", self.stacks / "examples")
        shutil.copytree(own / "local", self.stacks / "local")
        for stack in stacks or ("local",):
            shutil.copy((own if stack == "local" else SHIPPED) / f"Pulumi.{stack}.yaml", self.stacks)
        self.file = self.stacks / f"Pulumi.{(stacks or ('local',))[0]}.yaml"

    def run(self, *words: str, stdin: int = subprocess.DEVNULL) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.python, "-m", "trainyard", *words], cwd=self.project, capture_output=True, text=True,
            timeout=LONGEST_SECONDS, stdin=stdin,
            env={**os.environ, "TRAINYARD_HOME": str(self.home), "PULUMI_OPTION_COLOR": "never"},
        )  # fmt: skip

    def attempt(self, *words: str, stdin: int = subprocess.DEVNULL) -> subprocess.CompletedProcess[str]:
        return self.run(*words, "--local", "--stacks", str(self.stacks), stdin=stdin)

    def trainyard(self, *words: str) -> str:
        done = self.attempt(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def review(self, *words: str) -> dict[str, Any]:
        """What `trainyard review` says of the stack `local`."""
        done = self.run("review", "local", "--stacks", str(self.stacks), "--format", "json", *words)
        assert done.returncode == 0, done.stdout + done.stderr
        (review,) = json.loads(done.stdout)["reviews"]
        return dict(review)

    def change(self, old: str, new: str) -> None:
        text = self.file.read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {self.file}"
        self.file.write_text(text.replace(old, new))

    def configure(self, key: str, value: Any) -> None:
        """Sets a key of the stack file. None removes it."""
        written = yaml.safe_load(self.file.read_text())
        written["config"][f"trainyard:{key}"] = value
        written["config"] = {name: there for name, there in written["config"].items() if there is not None}
        self.file.write_text(yaml.safe_dump(written, sort_keys=False))

    def written(self, key: str) -> Any:
        """The value of a key of the stack file."""
        return yaml.safe_load(self.file.read_text())["config"][f"trainyard:{key}"]

    @property
    def cloud(self) -> control.Cloud:
        return control.start_cloud(self.home / "cloud")

    def env(self, more: Mapping[str, str] = NOTHING) -> dict[str, str]:
        return local_stack_environment(self.home) | dict(self.cloud.env) | {"PULUMI_OPTION_COLOR": "never", **more}

    def pulumi(self, *words: str, more: Mapping[str, str] = NOTHING) -> subprocess.CompletedProcess[str]:
        """Runs plain Pulumi. Of our variables, its environment has the cloud's endpoint only."""
        return subprocess.run(
            ["pulumi", *words], cwd=self.project, env=self.env(more), capture_output=True, text=True,
            timeout=LONGEST_SECONDS,
        )  # fmt: skip

    def take_over(self, recording: Path) -> None:
        """Replaces the stack `local` by a recorded one: its file, code, state and passphrase.

        The recording has the port of the local cloud at that time. It is replaced by that of this team's cloud.
        """
        shutil.copy(recording / "Pulumi.local.yaml", self.stacks)
        if (recording / "local").exists():
            shutil.copytree(recording / "local", self.stacks / "local", dirs_exist_ok=True)
        copies = self.home / "pulumi" / "stacks"
        copies.mkdir(parents=True)
        shutil.copy(recording / "passphrase", self.home / "pulumi")
        shutil.copy(recording / "local-file.yaml", copies / "Pulumi.local.yaml")
        (copies / "Pulumi.yaml").write_text("name: trainyard\nruntime: python\n")
        state = copies.parent / "recorded.json"
        state.write_text(_LOCAL_CLOUD.sub(self.cloud.endpoint, (recording / "state.json").read_text()))
        for words in (["init", "local", "--no-select"], ["import", "--file", str(state)]):
            where = [] if words[0] == "init" else ["--stack", "local"]
            done = self.pulumi("stack", *words, *where, "--cwd", str(copies), "--non-interactive")
            assert done.returncode == 0, done.stderr

    def on_stack(self, command: str, *words: str) -> str:
        """Runs a Pulumi command on the first stack, which has to be up, with its local stack file."""
        name = self.file.stem.removeprefix("Pulumi.")
        copy = self.home / "pulumi" / "stacks" / self.file.name
        there = {"TRAINYARD_STACKS": str(self.stacks)}
        done = self.pulumi(
            command, "--stack", name, "--config-file", str(copy), "--non-interactive", *words, more=there
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def resources(self) -> list[dict[str, Any]]:
        """The state of the first stack, as Pulumi exports it."""
        name = self.file.stem.removeprefix("Pulumi.")
        folder = str(self.home / "pulumi" / "stacks")
        told = json.loads(self.pulumi("stack", "export", "--stack", name, "--cwd", folder).stdout)
        return list(told["deployment"]["resources"])

    def opened(self) -> set[str]:
        """The values that replace the first stack's secrets on the local cloud, decrypted with the key of its local
        stack file."""
        folder, name = str(self.home / "pulumi" / "stacks"), self.file.stem.removeprefix("Pulumi.")
        told = self.pulumi("config", "--show-secrets", "--json", "--stack", name, "--cwd", folder).stdout
        return set(re.findall(r"stand-in-[0-9a-f]{16}", told))

    def in_cloud(self) -> list[tuple[str, str]]:
        """Kind and name of all resources that were made and not deleted, read from the cloud's tables."""
        with closing(sqlite3.connect(f"file:{self.home / 'cloud' / 'state.sqlite3'}?mode=ro", uri=True)) as state:
            rows = state.execute("SELECT kind, name FROM resources WHERE live = 1 ORDER BY kind, name").fetchall()
        return [(kind, name) for kind, name in rows if kind not in NOT_MADE]

    def end(self) -> None:
        control.stop_cloud(self.home / "cloud")


def ended(pid: int) -> bool:
    """Whether a process has ended. A zombie counts as ended: process 1 may collect it late."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def summary(output: str) -> dict[str, int]:
    """The counts under `Resources:`."""
    counts = output.rpartition("Resources:")[2].partition("Duration:")[0]
    return {word: int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", counts)}
