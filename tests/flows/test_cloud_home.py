# SPDX-License-Identifier: Apache-2.0
"""A local cloud belongs to its folder."""

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli.cloud import start
from localcloud import control, processes
from tests.support.cloud_fixture import eventually


def test_a_cloud_ends_when_its_folder_is_removed(tmp_path: Path) -> None:
    home = tmp_path / "cloud"
    cloud = control.start(home)
    started = processes.start_time(cloud.pid)
    try:
        shutil.rmtree(home)
        eventually(lambda: processes.is_same(cloud.pid, started), lambda runs: not runs)
    finally:
        control.stop(home)


def test_a_cloud_that_is_suspended_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "cloud"
    cloud = control.start(home)
    try:
        os.kill(cloud.pid, signal.SIGSTOP)
        with monkeypatch.context() as impatient:
            impatient.setattr(control, "_ANSWER_SECONDS", 0.1)
            with pytest.raises(control.CloudError, match=r"(?s)did not answer.*suspended.*trainyard cloud stop"):
                control.start(home, timeout=0.2)
        os.kill(cloud.pid, signal.SIGCONT)
        assert control.start(home) == cloud
    finally:
        os.kill(cloud.pid, signal.SIGCONT)
        control.stop(home)


def test_a_cloud_whose_starter_was_killed_is_waited_for(tmp_path: Path) -> None:
    home = tmp_path / "cloud"
    home.mkdir()
    _, pid = control._spawn(home, 0)  # as far as a command came that was killed
    try:
        # On a busy machine the second may be the first to take the folder; either way there is one, and it is found.
        cloud = control.start(home)
        assert control.start(home) == cloud
        if cloud.pid != pid:
            eventually(lambda: control._exit_code(pid), lambda code: code is not None)
    finally:
        control.stop(home)


def test_ctrl_c_while_a_cloud_starts_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    spawn = control._spawn

    def spawned(*words: Any) -> tuple[int, int]:
        begins, pid = spawn(*words)
        started.append(pid)
        return begins, pid

    def interrupted(home: Path) -> None:
        if started:
            raise KeyboardInterrupt

    monkeypatch.setattr(control, "_spawn", spawned)
    monkeypatch.setattr(control, "running", interrupted)
    with pytest.raises(KeyboardInterrupt):
        control.start(tmp_path / "cloud")
    assert [processes.start_time(pid) for pid in started] == [""]


def test_another_port_than_that_of_the_running_cloud_is_not_passed_over(tmp_path: Path) -> None:
    home = tmp_path / "cloud"
    cloud = control.start(home)
    try:
        port = int(cloud.endpoint.rpartition(":")[2])
        same, other = (CliRunner().invoke(start, ["--home", str(home), "--port", str(n)]) for n in (port, port - 1))
        assert (same.exit_code, other.exit_code) == (0, 1)
        assert f"It runs already, at {cloud.endpoint}." in other.output
    finally:
        control.stop(home)


@pytest.mark.parametrize("text", ["abc", "nan", "0"])
def test_a_variable_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("TRAINYARD_CLIENT_SECONDS", text)
    with pytest.raises(control.CloudError, match=f"TRAINYARD_CLIENT_SECONDS is '{text}': give a number of seconds"):
        control.start(tmp_path / "cloud")


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "cloud.lock").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="is a link: remove it"):
        control.start(tmp_path / "cloud")
    assert (tmp_path / "precious").read_text() == "precious"
