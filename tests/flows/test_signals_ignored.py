# SPDX-License-Identifier: Apache-2.0
"""nohup, and `&` in scripts, start commands with ignored signals. Commands respect that, but do not pass it on to what
they start."""

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
# A prefix that makes a command ignore SIGINT and SIGHUP.
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
        yield World(Clients(control.start_cloud(home)))
    finally:
        control.stop_cloud(home)


def test_nodes_do_not_inherit_ignored_signals_and_launchers_keep_them(world: World, tmp_path: Path) -> None:
    """A node handles signals as in OCI, however the cloud was started. A launcher ignores those that its starter
    ignored."""
    run = world.run(world.job(f"import signal\n{DEFAULT}"))
    world.printed(run, "True True")

    with nodes(Place(world, tmp_path / "place"), tmp_path, planned("pytorch", {"main": 1}), "hung-up") as one:
        one.script(ENDS)
        one.changes, one.starter = {"command": ["train.py"]}, IGNORING
        one.start()
        one.launchers[0].says("begins")
        for number in (signal.SIGHUP, signal.SIGINT):
            one.launchers[0].process.send_signal(number)
        # If a signal had an effect, the launcher would have ended its script by now.
        (tmp_path / "ends").touch()
        assert one.codes() == [0]


def test_processes_of_tests_do_not_inherit_ignored_signals(tmp_path: Path) -> None:
    """Tests of Ctrl-C also work in `make test &`."""
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
