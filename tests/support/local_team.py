# SPDX-License-Identifier: Apache-2.0
"""A team with stack files of its own and a home for what local stacks make: what the flows of `up` stand on."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import yaml

from localcloud import control
from schemas.model import NOTHING
from trainyard.engine.local import environment

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "stacks"
ONE_NODE = Path(__file__).with_name("stacks")
# A quiet machine takes a tenth of it.
LONGEST_SECONDS = 900.0
_LOCAL_CLOUD = re.compile(r"http://127\.0\.0\.1:\d+")
# A secret as a team's file would hold it; only the stack's own key opens it.
SEALED = {"secure": "v1:Yk9sYmFsbG9vbg==:2mVjdG9yc2VjcmV0"}
# What a tenancy has before anybody asks for anything, and what it remembers of what was asked.
NOT_MADE = ("tenancy", "compartment", "group", "user", "user-group-membership", "image-standing-by", "work-request")


class Team:
    """A team's own repository of stack files beside this checkout, with the stacks it asks for.

    Its stack `local` is the small one beside this file, or with `shipped` that of `make up`. `project` is the checkout
    or the release that the team works with, `python` the interpreter of its environment.
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

    def change(self, old: str, new: str) -> None:
        text = self.file.read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {self.file}"
        self.file.write_text(text.replace(old, new))

    def configure(self, key: str, value: Any) -> None:
        """Gives a key of the stack file another value."""
        written = yaml.safe_load(self.file.read_text())
        written["config"][f"trainyard:{key}"] = value
        self.file.write_text(yaml.safe_dump(written, sort_keys=False))

    def written(self, key: str) -> Any:
        """What the stack file says of a key."""
        return yaml.safe_load(self.file.read_text())["config"][f"trainyard:{key}"]

    @property
    def cloud(self) -> control.Cloud:
        return control.start(self.home / "cloud")

    def env(self, more: Mapping[str, str] = NOTHING) -> dict[str, str]:
        return environment(self.home) | dict(self.cloud.env) | {"PULUMI_OPTION_COLOR": "never", **more}

    def pulumi(self, *words: str, more: Mapping[str, str] = NOTHING) -> subprocess.CompletedProcess[str]:
        """Plain Pulumi, with nothing of ours but the endpoint of the cloud in its environment."""
        return subprocess.run(
            ["pulumi", *words], cwd=self.project, env=self.env(more), capture_output=True, text=True,
            timeout=LONGEST_SECONDS,
        )  # fmt: skip

    def take_over(self, recording: Path) -> None:
        """Makes the stack `local` the recorded one: its file, its code, its state and what opens its secrets.

        A recording names the port that the local cloud had then. This team's cloud has another one.
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
        """A Pulumi command on the first stack, which is up, by its copied file."""
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
        """What stands in for the secrets of the first stack's file, as the key of its copy opens them."""
        folder, name = str(self.home / "pulumi" / "stacks"), self.file.stem.removeprefix("Pulumi.")
        told = self.pulumi("config", "--show-secrets", "--json", "--stack", name, "--cwd", folder).stdout
        return set(re.findall(r"stand-in-[0-9a-f]{16}", told))

    def in_cloud(self) -> list[tuple[str, str]]:
        """Kind and name of all that anybody made and nobody removed, straight from the cloud's own tables."""
        with sqlite3.connect(f"file:{self.home / 'cloud' / 'state.sqlite3'}?mode=ro", uri=True) as state:
            rows = state.execute("SELECT kind, name FROM resources WHERE live = 1 ORDER BY kind, name").fetchall()
        state.close()
        return [(kind, name) for kind, name in rows if kind not in NOT_MADE]

    def end(self) -> None:
        control.stop(self.home / "cloud")


def ended(pid: int) -> bool:
    """Gone, or dead and not yet collected by whatever is process 1 here."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def summary(output: str) -> dict[str, int]:
    """The counts under `Resources:`."""
    counts = output.rpartition("Resources:")[2].partition("Duration:")[0]
    return {word: int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", counts)}
