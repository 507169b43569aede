# SPDX-License-Identifier: Apache-2.0
"""Only the last command that uses a local cloud stops it, and no other command starts meanwhile."""

from __future__ import annotations

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

from trainyard.local.cloud_use import CloudUse

_HOLDER = """
import sys
from pathlib import Path
from trainyard.local.cloud_use import CloudUse
use = CloudUse(Path(sys.argv[1]), print)
print("holds", flush=True)
sys.stdin.read()
"""


def test_only_the_last_command_may_stop_the_cloud(tmp_path: Path) -> None:
    uses = [CloudUse(tmp_path, print) for _ in range(3)]
    alone = []
    for use in uses:
        with use.end() as last:
            alone.append(last)
    assert alone == [False, False, True]


def test_a_command_waits_while_the_cloud_is_being_stopped(tmp_path: Path) -> None:
    lines: list[str] = []
    said = Event()

    def tell(line: str) -> None:
        lines.append(line)
        said.set()

    with ThreadPoolExecutor() as pool:
        with CloudUse(tmp_path, print).end() as alone:
            assert alone
            late = pool.submit(CloudUse, tmp_path, tell)
            assert said.wait(20)
            assert not late.done()
        with late.result(20).end() as alone:
            assert alone
    assert lines == ["Another command is stopping the local cloud: waiting until it has."]


def test_a_killed_command_releases_the_cloud(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "holds\n"
        with CloudUse(tmp_path, print).end() as alone:
            assert not alone
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    with CloudUse(tmp_path, print).end() as alone:
        assert alone
