# SPDX-License-Identifier: Apache-2.0
"""The supervisor of one node, run as a process."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localcloud import files
from localcloud.hosts import child_process
from tests.support.waiting import eventually

Supervise = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def supervise(tmp_path: Path, request: pytest.FixtureRequest) -> Supervise:
    """Starts a supervisor, which is ended after the test, even if the test fails."""

    def start(
        *command: str, seconds: float = 0, grace: float = 5.0, parent: int | None = None, **more: Any
    ) -> subprocess.Popen[bytes]:
        spec = {
            "parent": parent or os.getpid(),
            "command": command,
            "folder": str(tmp_path),
            "environment": {"PATH": os.environ["PATH"]},
            "seconds": seconds,
            "grace": grace,
            "result": str(tmp_path / "result"),
            "folders": [],
            "scratch": "",
            **more,
        }
        path = tmp_path / "spec.json"
        path.write_text(json.dumps(spec))
        process = subprocess.Popen(
            child_process.module_command("localcloud.hosts.supervisor", str(path)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

        def end() -> None:
            process.terminate()
            process.communicate(timeout=30)

        request.addfinalizer(end)
        return process

    return start


def _result(tmp_path: Path) -> Any:
    return json.loads((tmp_path / "result").read_text())


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", -9)])
def test_the_result_has_exit_code_and_times(supervise: Supervise, tmp_path: Path, script: str, code: int) -> None:
    process = supervise("bash", "-c", f"echo hello; {script}")
    assert process.communicate(timeout=30)[0] == b"hello\n"
    result = _result(tmp_path)
    assert (result["reason"], result["code"]) == ("exited", code)
    assert result["started"] <= result["finished"]


def test_the_time_limit_ends_the_command(supervise: Supervise, tmp_path: Path) -> None:
    supervise("sleep", "600", seconds=0.2).communicate(timeout=30)
    assert (_result(tmp_path)["reason"], _result(tmp_path)["code"]) == ("time limit", -signal.SIGTERM)


def test_a_command_that_ignores_sigterm_is_killed_after_the_grace_period(supervise: Supervise, tmp_path: Path) -> None:
    process = supervise("bash", "-c", "trap '' TERM; echo ready; while true; do sleep 0.05; done", grace=0.2)
    assert process.stdout is not None
    process.stdout.readline()
    process.terminate()
    process.communicate(timeout=30)
    assert (_result(tmp_path)["reason"], _result(tmp_path)["code"]) == ("stopped", -signal.SIGKILL)


def test_a_process_that_left_the_process_group_is_ended_too(supervise: Supervise) -> None:
    process = supervise("bash", "-c", "setsid sleep 600 >/dev/null 2>&1 & echo $!")
    orphan = int(process.communicate(timeout=30)[0])
    eventually(lambda: files.process_start_time(orphan), lambda started: not started)


def test_a_missing_command_is_reported(supervise: Supervise, tmp_path: Path) -> None:
    supervise("no-such-command").communicate(timeout=30)
    assert (_result(tmp_path)["reason"], "no-such-command" in _result(tmp_path)["detail"]) == ("unstartable", True)


@pytest.mark.parametrize("key", ["namespaces", "place"])
def test_a_node_never_starts_outside_of_its_namespaces(supervise: Supervise, tmp_path: Path, key: str) -> None:
    """A cloud of an earlier version, which still runs after an upgrade, writes `place` instead of `namespaces`."""
    absent = {"user": 1000, "network": 1001}
    supervise("touch", "started", **{key: absent}).communicate(timeout=30)
    assert _result(tmp_path)["reason"] == "unstartable"
    assert not (tmp_path / "started").exists()


def test_the_supervisor_starts_nothing_if_its_parent_has_ended(supervise: Supervise, tmp_path: Path) -> None:
    assert supervise("touch", "started", parent=1).wait(timeout=30) == 1
    assert not (tmp_path / "started").exists()
