# SPDX-License-Identifier: Apache-2.0
"""An offline review of one stack, as a whole process, against `pulumi preview` of the same program under the real
engine; and of 100 stacks in one command, against as many previews, with the memory of its largest process.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench.check import copies
from bench.harness.rows import ROOT, Aim, Row, in_turns, process_row, spent
from bench.preview import program_of
from tests.support.local_team import Team

MANY = 100
ONE_AIM, MANY_AIM, MEMORY_AIM = Aim("ratio", 0.5), Aim("figure", 20.0), Aim("figure", 400.0)
REVIEW = (sys.executable, "-m", "trainyard", "review")
# Of all processes below it, the largest: each fork of the recorder shares most of its memory with the others.
LARGEST = """\
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
"""


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="trainyard-bench-") as place, ExitStack() as stack:
        team = Team(Path(place), shipped=True)
        stack.callback(team.end)
        program = program_of(team)
        ours, previews = in_turns(lambda: spent([*REVIEW, str(team.file)]), program.spent)
    preview = min(one.clock for one in previews)
    return [process_row("review one stack", "pulumi preview", ours, previews, ONE_AIM), *_many(preview)]


def _many(preview: float) -> list[Row]:
    # The folder is inside the project, because a stack's code must be.
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=ROOT) as folder:
        command = [*REVIEW, *copies(Path(folder), MANY)]
        seconds = spent(command).clock
        largest = float(subprocess.check_output([sys.executable, "-c", LARGEST, *command], cwd=ROOT, text=True))
    name, others = f"review {MANY} stacks", preview * MANY
    return [
        Row(name, seconds, "s", f"{MANY} previews", others, seconds / others, MANY_AIM),
        Row(
            f"{name}, largest process",
            largest,
            "MB",
            "the aim",
            MEMORY_AIM.limit,
            largest / MEMORY_AIM.limit,
            MEMORY_AIM,
        ),
    ]
