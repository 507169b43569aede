# SPDX-License-Identifier: Apache-2.0
"""Started by nohup, or by a script's `&`, which ignore signals on purpose: that is kept to, and goes no further."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud import control
from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import World
from tests.support.nodes import Place, nodes, planned
from tests.support.waiting import LONGEST_SECONDS

ROOT = Path(__file__).resolve().parents[2]
# What ignores SIGINT and SIGHUP for all that it starts; the command follows.
IGNORING = ("bash", "-c", 'trap "" INT HUP; exec "$@"', "-")
DEFAULT = (
    "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler,"
    " signal.getsignal(signal.SIGHUP) is signal.SIG_DFL)"
)
ENDS = """
import os, signal, time
print("begins", flush=True)
while not os.path.exists("ends"):
    time.sleep(0.05)
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A local cloud that a command under nohup has started."""
    home = tmp_path / "cloud"
    try:
        command = [*IGNORING, sys.executable, "-m", "trainyard", "cloud", "start", "--home", str(home)]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=LONGEST_SECONDS)
        yield World(Clients(control.start(home)))
    finally:
        control.stop(home)


def test_nodes_and_launchers(world: World, tmp_path: Path) -> None:
    """A node's signals are as in OCI, whoever started the cloud; a launcher goes on where its starter said so."""
    run = world.run(world.job(f"import signal\n{DEFAULT}"))
    world.printed(run, "True True")

    with nodes(Place(world, tmp_path / "place"), tmp_path, planned("pytorch", {"main": 1}), "hung-up") as one:
        one.script(ENDS)
        one.changes, one.starter = {"command": ["train.py"]}, IGNORING
        one.start()
        one.launchers[0].says("begins")
        for number in (signal.SIGHUP, signal.SIGINT):
            one.launchers[0].process.send_signal(number)
        # Had a signal counted, the launcher would have told its script to end by now: it looks at both as often.
        (tmp_path / "ends").touch()
        assert one.codes() == [0]


def test_what_tests_start_does_not_inherit_it(tmp_path: Path) -> None:
    """`make test &`: Ctrl-C can be tested all the same."""
    file = tmp_path / "test_child.py"
    file.write_text(
        "import subprocess, sys\n\n\ndef test_child():\n"
        f"    told = subprocess.check_output([sys.executable, '-c', 'import signal; {DEFAULT}'], text=True)\n"
        "    assert told == 'True True\\n'\n"
    )
    command = [*IGNORING, sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "--rootdir", str(ROOT),
               "-c", str(ROOT / "pyproject.toml"), "-n", "1", "-p", "no:cacheprovider", str(file)]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
