# SPDX-License-Identifier: Apache-2.0
"""docs/first-hour.md, typed by a user of a machine that has nothing but Debian, Python, make and git."""

import re

import pytest

from tests.support.bare_machine import BareMachine
from tests.support.first_hour import NEEDS_ROOT, blocks, promised
from tests.support.pages import as_shell
from tests.support.tutorials import TUTORIALS, as_typed

LONGEST_SECONDS = 600
FETCHING = "runs outputs first --local --stacks first --to results"
_SETUP_ENDED = re.compile(r"^set up after (\d+) seconds$", re.MULTILINE)
_FETCHED = re.compile(r"^results after (\d+) seconds$", re.MULTILINE)


@pytest.mark.torture
def test_the_first_hour_page_has_results_within_ten_minutes() -> None:
    told = BareMachine().run("bash", "-c", f"set -euo pipefail\nmake setup\n{_AFTER_SETUP}\n{_typed()}")
    print(told.stdout)
    assert told.returncode == 0
    setup, fetched = (int(found[1]) for one in (_SETUP_ENDED, _FETCHED) if (found := one.search(told.stdout)))
    print(f"results after {fetched} seconds, {setup} of them for make setup")
    assert fetched < LONGEST_SECONDS


_AFTER_SETUP = """echo "set up after $SECONDS seconds"
PATH=$PWD/.venv/bin:$PATH"""


def _typed() -> str:
    """Runs the page as a user without root. Promised files are checked as soon as they are fetched."""
    lines = []
    for block in blocks(without=[NEEDS_ROOT]):
        lines.append(as_shell(block))
        if FETCHING in block.text:
            lines += [f"test -s results/{job}/first/workdir/{file}" for job, file in promised(without=[NEEDS_ROOT])]
            lines.append('echo "results after $SECONDS seconds"')
    return "\n".join(lines)


# As many processes as make a machine slow: `up` and its nodes have to do without most of the processors.
_LOAD = 20


@pytest.mark.torture
def test_tutorials_train_beside_a_load_of_twenty() -> None:
    """Those that `check` says nothing about, or what a line of the stack file mends, one after the other."""
    trained = [name for name, tutorial in TUTORIALS.items() if tutorial.result]
    down = "trainyard down {0} --local --stacks tests/tutorials/{0} --delete-data --yes"
    typed = "\n".join(f"{as_typed(name, 'tests/tutorials')}{down.format(name)}" for name in trained)
    load = f"for _ in $(seq {_LOAD}); do (while :; do :; done) & done; trap 'kill $(jobs -p)' EXIT"
    told = BareMachine().run("bash", "-c", f"set -euo pipefail\nmake setup\n{_AFTER_SETUP}\n{load}\n{typed}")
    print(told.stdout)
    assert told.returncode == 0
