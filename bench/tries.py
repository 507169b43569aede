# SPDX-License-Identifier: Apache-2.0
"""`trainyard run` with other arguments, from the command to the first line of the script, against `up` of that change.

Both are whole commands, measured alternately on one stack that is up. The script prints the time as its first action.
`up` waits until the run has started, and has nothing else to do.
"""

from __future__ import annotations

import re
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.harness.rows import Aim, Row
from tests.support.local_team import Team
from tests.support.waiting import eventually

TURNS = 5
AIM = Aim("ratio", 1 / 3)
SCRIPT = "import sys, time\nprint(f'began {time.time()} with {sys.argv[1]}', flush=True)\n"
_BEGAN = re.compile(r"began ([0-9.]+) with (\S+)")


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="trainyard-bench-") as place:
        team = Team(Path(place))
        try:
            (team.stacks / "local" / "train.py").write_text(SCRIPT)
            team.change("command: train.py --epochs 5", "command: train.py")
            _change(team, "up-0")
            team.trainyard("up", "local")
            pairs = [(_try(team, f"try-{turn}"), _up(team, f"up-{turn}")) for turn in range(1, TURNS + 1)]
        finally:
            team.end()
    tries, ups = zip(*pairs, strict=True)
    ratio = statistics.median(one / other for one, other in pairs)
    name = "`trainyard run` until the script's first line"
    return [Row(name, statistics.median(tries), "s", "`trainyard up`", statistics.median(ups), ratio, AIM)]


def _try(team: Team, word: str) -> float:
    begins = time.time()
    team.trainyard("run", "local", "line", "--args", word)
    return _first_line(team, word) - begins


def _up(team: Team, word: str) -> float:
    _change(team, word)
    begins = time.time()
    team.trainyard("up", "local")
    return _first_line(team, word) - begins


def _change(team: Team, word: str) -> None:
    text = re.sub(r"base: \{.*\}", f"base: {{ until: started, args: [{word}] }}", team.file.read_text())
    team.file.write_text(text)


def _first_line(team: Team, word: str) -> float:
    """When the script began, by the time that it printed."""

    def began() -> list[str]:
        done: Any = team.run("runs", "logs", "local", "--local", "--stacks", str(team.stacks))
        return [moment for moment, given in _BEGAN.findall(done.stdout) if given == word]

    return float(eventually(began, bool)[0])
