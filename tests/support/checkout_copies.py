# SPDX-License-Identifier: Apache-2.0
"""Copies of this checkout, in which tests add a platform or a framework."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tools.scaffold import GENERATORS
from trainyard.engine.obtain import local_stack_environment

ROOT = Path(__file__).resolve().parents[2]
ADDED = ROOT / "tests" / "flows" / "paper_project"
LONGEST_SECONDS = 300.0


class Checkout:
    """A copy of the checkout, including new files, with the platform `paper`."""

    def __init__(self, root: Path, tests: bool = False) -> None:
        self.root = root / "checkout"
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        files = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True, text=True).stdout.split("\0")
        self.files = [name for name in files if (ROOT / name).is_file() and (tests or not name.startswith("tests/"))]
        for name in self.files:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        self.stack, self.desk = self.root / "stacks/Pulumi.fair.yaml", root / "desk"
        # A link for `virtualenv: .venv`, so that the SDK need not be installed again.
        (self.root / ".venv").symlink_to(sys.prefix)
        self.env = local_stack_environment(root / "home") | {
            "PULUMI_OPTION_COLOR": "never",
            "PULUMI_SKIP_UPDATE_CHECK": "1",
        }

    def run(self, *words: str, seconds: float = LONGEST_SECONDS) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, cwd=self.root, env=self.env, capture_output=True, text=True, timeout=seconds)

    def python(self, *words: str) -> str:
        done = self.run(sys.executable, "-m", *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def pulumi(self, *words: str) -> str:
        done = self.run("pulumi", *words, "--non-interactive")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def compose(self) -> None:
        for generator in GENERATORS:
            self.python(generator)

    def fill_in(self) -> None:
        """Adds what a developer writes after the scaffold: the platform's code, and more columns of the row."""
        shutil.copytree(ADDED / "paper", self.root / "components" / "paper", dirs_exist_ok=True)
        shutil.copy(ADDED / "draw.py", self.root / "stacks")
        table = self.root / "catalog/platforms.toml"
        table.write_text(table.read_text().partition("\n[paper]")[0] + (ADDED / "row.toml").read_text())
        text = (ADDED / "Pulumi.fair.yaml").read_text()
        self.stack.write_text(text.replace("DESK", str(self.desk)).replace("DRAW", str(self.root / "stacks/draw.py")))

    def changed(self) -> set[str]:
        return {name for name in self.files if (self.root / name).read_bytes() != (ROOT / name).read_bytes()}
