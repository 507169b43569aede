# SPDX-License-Identifier: Apache-2.0
"""Converts files as a user does, and starts the nodes of what comes out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from components.plan.build import plan_file
from components.plan.model import NodePlan
from tests.support.nodes import Nodes, nodes
from tests.support.samples import job

ROOT = Path(__file__).parents[2]
BRING = ROOT / "tests" / "bring"
# Whoever converts has these settings.
HOME = BRING / "oci-config"
STACK = "vision-dev"


@dataclass(frozen=True)
class Converted:
    """How `trainyard convert` ended, and what it printed: the stack, and the notes."""

    code: int
    stack: str
    notes: str

    def codes(self) -> list[str]:
        """The codes of the notes, in their order."""
        words = [line.split() for line in self.notes.splitlines()]
        return [word.strip(":") for line in words for word in line if word.startswith("TB") and word.endswith(":")]


def convert(folder: Path, *words: str) -> Converted:
    """Runs the command in a folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OCI_", "AWS_"))}
    done = subprocess.run(
        [sys.executable, "-m", "trainyard", "convert", "--stack", STACK, *words], cwd=folder,
        env={**environment, "HOME": str(HOME), "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    return Converted(done.returncode, done.stdout, done.stderr)


def planned_nodes(stack: str, folder: Path, job_name: str, run: str, of_platform: bool = False) -> tuple[NodePlan, ...]:
    """The nodes of a run of a converted stack: with what only its platform knows, or without."""
    file = folder / f"Pulumi.{STACK}.yaml"
    file.write_text(stack, "utf-8")
    (folder / "Pulumi.yaml").write_text("name: trainyard\nruntime: python\n", "utf-8")
    planned = plan_file(file, lambda text: None).jobs[job_name].runs[run].nodes
    if of_platform:
        return planned
    return tuple(
        replace(node, environment={key: text for key, text in node.environment.items() if not key.startswith("OCI_")})
        for node in planned
    )


@contextmanager
def converted_nodes(folder: Path, files: Sequence[str], job_name: str, run: str = "base") -> Iterator[Nodes]:
    """Launchers of a converted run, on loopback addresses. They start in the folder of the files."""
    made = convert(folder, *files)
    assert made.code in (0, 1), made.notes
    with nodes(None, folder, job(), run, planned_nodes(made.stack, folder, job_name, run)) as started:
        yield started
