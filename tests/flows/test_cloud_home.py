# SPDX-License-Identifier: Apache-2.0
"""A local cloud belongs to its folder."""

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import click
import psutil
import pytest
from click.testing import CliRunner

from localcloud import control, files
from tests.support.waiting import LONGEST_SECONDS, eventually
from trainyard.cli.cloud import start_cloud_command
from trainyard.cli.errors import INTERRUPTED
from trainyard.cli.planning import running_cloud

ROOT = Path(__file__).resolve().parents[2]


def test_a_cloud_ends_when_its_folder_is_removed(tmp_path: Path) -> None:
    home = tmp_path / "cloud"
    cloud = control.start_cloud(home)
    started = files.process_start_time(cloud.pid)
    try:
        shutil.rmtree(home)
        eventually(lambda: files.is_same_process(cloud.pid, started), lambda runs: not runs)
    finally:
        control.stop_cloud(home)


def test_a_restarted_cloud_keeps_its_address_unless_another_program_uses_it(tmp_path: Path) -> None:
    home = tmp_path / "cloud"
    try:
        before = control.start_cloud(home)
        control.stop_cloud(home)
        again = control.start_cloud(home)
        assert again.endpoint == before.endpoint
        control.stop_cloud(home)
        with closing(socket.create_server(("127.0.0.1", int(again.endpoint.rpartition(":")[2])))):
            assert control.start_cloud(home).endpoint != before.endpoint
    finally:
        control.stop_cloud(home)


def test_a_suspended_cloud_is_still_recognized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "cloud"
    cloud = control.start_cloud(home)
    try:
        os.kill(cloud.pid, signal.SIGSTOP)
        with monkeypatch.context() as impatient:
            impatient.setattr(control, "_ANSWER_SECONDS", 0.1)
            with pytest.raises(control.CloudError, match=r"(?s)did not answer.*suspended.*trainyard cloud stop"):
                control.start_cloud(home, timeout=0.2)
            with pytest.raises(click.ClickException, match=r"runs, but did not answer .*it is busy, or suspended"):
                running_cloud(home)
        os.kill(cloud.pid, signal.SIGCONT)
        assert control.start_cloud(home) == cloud
    finally:
        os.kill(cloud.pid, signal.SIGCONT)
        control.stop_cloud(home)


@contextmanager
def _starter(home: Path) -> Iterator[tuple[subprocess.Popen[bytes], psutil.Process]]:
    """`trainyard cloud start`, and the server it has just started, which stands still and so is not ready yet."""
    home.mkdir(mode=0o700)
    words = [sys.executable, "-m", "trainyard", "cloud", "start", "--home", str(home)]
    with (
        closing(sqlite3.connect(home / "state.sqlite3", isolation_level=None)) as state,
        subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as command,
    ):
        try:
            state.execute("BEGIN EXCLUSIVE")  # on a busy machine it might be ready before it is seen
            (server,) = eventually(lambda: _servers(home), bool)
            server.suspend()
            state.execute("ROLLBACK")
            yield command, server
        finally:
            command.kill()
            for one in _servers(home):
                one.kill()


def _servers(home: Path) -> list[psutil.Process]:
    """The processes that are servers of this folder, or will become one."""
    servers = (one for one in psutil.process_iter(["cmdline"]) if str(home) in (one.info["cmdline"] or ()))
    return [one for one in servers if "localcloud.serve" in one.info["cmdline"]]


def test_a_second_start_waits_for_a_cloud_whose_starter_was_killed(tmp_path: Path) -> None:
    home = tmp_path / "cloud"
    try:
        with _starter(home) as (command, server):
            command.kill()
            command.wait()
            server.resume()
            # On a busy machine, the second one may lock the folder first. In any case there is only one server, and it
            # is found.
            cloud = control.start_cloud(home)
            assert control.start_cloud(home) == cloud
            eventually(lambda: [one.pid for one in _servers(home)], lambda pids: pids == [cloud.pid])
    finally:
        control.stop_cloud(home)


def test_ctrl_c_during_a_start_leaves_no_cloud(tmp_path: Path) -> None:
    home = tmp_path / "cloud"
    with _starter(home) as (command, _):
        command.send_signal(signal.SIGINT)
        assert command.wait(LONGEST_SECONDS) == INTERRUPTED
        assert _servers(home) == []


def test_ctrl_c_while_the_server_is_spawned_leaves_no_cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spawn = os.posix_spawn

    def interrupted(*words: Any, **options: Any) -> int:
        pid = spawn(*words, **options)
        signal.raise_signal(signal.SIGINT)
        return pid

    monkeypatch.setattr(os, "posix_spawn", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            control.start_cloud(tmp_path / "cloud")
        assert _servers(tmp_path / "cloud") == []
    finally:
        for one in _servers(tmp_path / "cloud"):
            one.kill()


def test_a_requested_port_that_differs_from_the_running_clouds_is_an_error(tmp_path: Path) -> None:
    home = tmp_path / "cloud"
    cloud = control.start_cloud(home)
    try:
        port = int(cloud.endpoint.rpartition(":")[2])
        same, other = (
            CliRunner().invoke(start_cloud_command, ["--home", str(home), "--port", str(n)]) for n in (port, port - 1)
        )
        assert (same.exit_code, other.exit_code) == (0, 1)
        assert f"The local cloud runs already, at {cloud.endpoint}." in other.output
    finally:
        control.stop_cloud(home)


@pytest.mark.parametrize("text", ["abc", "nan", "0"])
def test_an_invalid_variable_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("TRAINYARD_CLIENT_SECONDS", text)
    with pytest.raises(control.CloudError, match=f"TRAINYARD_CLIENT_SECONDS is '{text}': give a number of seconds"):
        control.start_cloud(tmp_path / "cloud")


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "cloud.lock").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="is a link: remove it"):
        control.start_cloud(tmp_path / "cloud")
    assert (tmp_path / "precious").read_text() == "precious"
