# SPDX-License-Identifier: Apache-2.0
"""`trainyard init` and `convert` as whole processes, against a Python that imports what both need; and what
`speaks: [slurm]` adds to the start of a node."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.harness.rows import ROOT, Aim, Row, Spent, in_turns, process_row, spent, spent_by
from components.plan.model import NodePlan
from tests.support.bringing import convert, planned_nodes
from tests.support.nodes import nodes
from tests.support.samples import job

SCRIPTS = ROOT / "tests" / "bring" / "slurm"
# What a command and a start may take.
AIM_SECONDS, AIM_MILLISECONDS = 0.5, 20.0
FLOOR = (sys.executable, "-c", "import click, yaml, jsonschema")
_BATCH_SCRIPT = "#!/bin/sh\n#SBATCH --nodes=1\ntrue\n"


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="bench-bring-") as made:
        folder = Path(made)
        shutil.copytree(SCRIPTS, folder / "slurm")
        # A file that exists is never overwritten.
        names = (f"bench-{number}" for number in itertools.count())
        script, stacks = str(folder / "slurm" / "train.py"), str(folder)
        return [
            _command_row("init", lambda: ["init", script, "--yes", "--stacks", stacks, "--stack", next(names)]),
            _command_row("convert", lambda: ["convert", str(folder / "slurm" / "ddp.sbatch")]),
            _speaks_row(folder / "node"),
        ]


def _command_row(name: str, words: Callable[[], Sequence[str]]) -> Row:
    ours, floor = in_turns(lambda: spent_by(lambda: _run_quietly(words())), lambda: spent(FLOOR))
    return process_row(name, "import click, yaml and jsonschema", ours, floor, Aim("figure", AIM_SECONDS))


def _run_quietly(words: Sequence[str]) -> None:
    """Without the notes of `convert`."""
    subprocess.run([sys.executable, "-m", "trainyard", *words], cwd=ROOT, check=True, capture_output=True)


def _speaks_row(folder: Path) -> Row:
    """A launcher of one node without a bucket, from its start to its end. Processor time, because the difference is
    smaller than what other work on the machine makes of a start."""
    folder.mkdir()
    (folder / "job").write_text(_BATCH_SCRIPT)
    planned = planned_nodes(convert(folder, "job").stack, folder, "job", "base")
    found = in_turns(lambda: _node(folder, planned, {}), lambda: _node(folder, planned, {"speaks": []}))
    ours, plain = (1000 * min(one.processor for one in side) for side in found)
    name, against = "`speaks: [slurm]` adds to a start", "the same script without it"
    return Row(name, ours - plain, "ms", against, plain, ours / plain, Aim("figure", AIM_MILLISECONDS))


def _node(folder: Path, planned: tuple[NodePlan, ...], changes: Mapping[str, Any]) -> Spent:
    with nodes(None, folder, job(), "base", planned, changes=changes) as run:
        took = spent_by(lambda: run.start().codes())
        assert run.codes() == [0], run.shown()
    return took
