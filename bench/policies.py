# SPDX-License-Identifier: Apache-2.0
"""`pulumi preview` with the policy pack, against the same preview without it: a stack of 200 resources.

Both are plain `pulumi`, in turns, with the same engine, plugins and local cloud. Components count as resources. The
processor time is that of all processes that the engine starts, the pack included.
"""

from __future__ import annotations

import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench.harness.rows import Aim, Row, in_turns, process_row
from bench.preview import PACK, program_of
from bench.up import only_jobs
from tests.support.local_team import Team

AIM = Aim("ratio", 1.2)


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="trainyard-bench-") as place, ExitStack() as stack:
        team = Team(Path(place), shipped=True)
        stack.callback(team.end)
        only_jobs(team)
        program = program_of(team)
        plain, judged = in_turns(program.spent, lambda: program.spent(*PACK))
    clocks = [statistics.median(one.clock for one in side) for side in (judged, plain)]
    name = "200 resources, policies judged"
    clock = Row(f"{name}, by the clock", clocks[0], "s", "no pack", clocks[1], clocks[0] / clocks[1])
    return [process_row(name, "no pack", judged, plain, AIM), clock]
