# SPDX-License-Identifier: Apache-2.0
"""Runs `trainyard rehearse` as people do, with a separate home."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RING, POOL = (Path(__file__).with_name(name) for name in ("rehearse_project", "pool_project"))
# A rehearsal takes 15 seconds on an idle machine and has timeouts of its own. This one only ends a rehearsal that
# hangs.
LONGEST_SECONDS = 900.0


@dataclass(frozen=True)
class Rehearsals:
    """A folder of stack files, and the home in which their rehearsals run."""

    home: Path
    stacks: Path

    @classmethod
    def of_ring(cls, root: Path) -> Rehearsals:
        """A copy of the project `ring`, whose workers send a number to the main node. Tests put mistakes into it."""
        return cls._of(RING, root)

    @classmethod
    def of_pool(cls, root: Path) -> Rehearsals:
        """A copy of the project `pool`, whose head can work without its workers."""
        return cls._of(POOL, root)

    @classmethod
    def of_examples(cls, root: Path, *names: str) -> Rehearsals:
        """Copies of example stacks with their code."""
        stacks = root / "stacks"
        shutil.copytree(ROOT / "stacks" / "examples", stacks / "examples")
        for name in names:
            shutil.copy(ROOT / "stacks" / f"Pulumi.{name}.yaml", stacks)
        return cls(root / "home", stacks)

    @classmethod
    def _of(cls, project: Path, root: Path) -> Rehearsals:
        stacks = root / "stacks"
        shutil.copytree(project, stacks)
        return cls(root / "home", stacks)

    def change(self, file: str, old: str, new: str) -> None:
        text = (self.stacks / file).read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {file}"
        (self.stacks / file).write_text(text.replace(old, new))

    def words(self, stack: str, *more: str) -> list[str]:
        return [sys.executable, "-m", "trainyard", "rehearse", stack, "--stacks", str(self.stacks), *more]

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "TRAINYARD_HOME": str(self.home), "PULUMI_OPTION_COLOR": "never"}

    def start(self, stack: str, *more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(stack, *more), cwd=ROOT, env=self.env, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, stack: str, *more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(stack, *more), cwd=ROOT, env=self.env, text=True, capture_output=True, timeout=LONGEST_SECONDS
        )

    def report(self, stack: str, *more: str) -> dict[str, Any]:
        """The report of a rehearsal. The command's exit code has to be the report's."""
        done = self.run(stack, "--format", "json", *more)
        assert done.stdout, done.stderr
        report: dict[str, Any] = json.loads(done.stdout)
        assert report["exitCode"] == done.returncode, done.stderr
        return report

    def reviewed(self, stack: str, report: dict[str, Any]) -> dict[str, Any]:
        """A review of the stack as a new one, with a rehearsal's report as its proof."""
        file = self.stacks.parent / "rehearsal.json"
        file.write_text(json.dumps(report), "utf-8")
        words = [
            sys.executable, "-m", "trainyard", "review", stack, "--stacks", str(self.stacks), "--format", "json",
            "--rehearsal", str(file),
        ]  # fmt: skip
        done = subprocess.run(words, cwd=ROOT, env=self.env, text=True, capture_output=True, timeout=LONGEST_SECONDS)
        assert done.returncode == 0, done.stderr
        (review,) = json.loads(done.stdout)["reviews"]
        return dict(review)

    def left(self) -> list[str]:
        """Files and processes that ended rehearsals left behind."""
        folder = self.home / "rehearsals"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []
