# SPDX-License-Identifier: Apache-2.0
"""Both plugins under the real engine: a stack with a run comes up on the local cloud, changes, fails and goes."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import engine
from localcloud import control
from tests.cloud_fixture import Clients, local_cloud
from tests.flows.cloud_world import runs_may_log

PROJECT = Path(__file__).with_name("provider_project")
CHECKOUT = Path(__file__).resolve().parents[2]
SECRET = "hush-hush-token"
_SECONDS = 600.0

pytestmark = pytest.mark.engine


class Stack:
    def __init__(self, root: Path, cloud: control.Cloud) -> None:
        self.folder = root / "project"
        shutil.copytree(PROJECT, self.folder)
        for name, target in ((".venv", sys.prefix), ("provider", str(CHECKOUT / "provider"))):
            (self.folder / name).symlink_to(target)
        self.env = {**engine.environment(root / "home"), **cloud.env, "PULUMI_OPTION_COLOR": "never"}
        self.said = ""
        self("stack", "init", "dev")
        self.set("compartment", cloud.compartment)
        self.set("token", SECRET, "--secret")

    def set(self, key: str, value: str, *options: str) -> None:
        self("config", "set", key, value, *options)

    def __call__(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            ["pulumi", "--non-interactive", *words],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
        said = done.stdout + done.stderr
        assert (done.returncode == 0) == (code == 0), said
        self.said += said
        return said


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[control.Cloud]:
    with local_cloud(tmp_path / "cloud") as started:
        runs_may_log(Clients(started))
        yield started


def test_a_stack_with_a_run(tmp_path: Path, cloud: control.Cloud) -> None:
    stack = Stack(tmp_path, cloud)
    assert "trainyard:index:Run" in stack("preview")
    up = stack("up", "--yes")
    assert "SUCCEEDED" in up
    stack("preview", "--expect-no-changes")
    stack("up", "--yes", "--refresh", "--expect-no-changes")

    stack.set("team", "speech")
    assert "1 updated" in stack("up", "--yes")

    stack.set("exit", "3")
    failed = stack("up", "--yes", code=1)
    assert "exited with code 3" in failed
    assert "training with [secret]" in failed
    again = stack("up", "--yes", code=1)
    assert "exited with code 3" in again

    stack.set("exit", "0")
    assert "SUCCEEDED" in stack("up", "--yes")
    stack("preview", "--expect-no-changes")

    exported = stack("stack", "export")
    assert SECRET not in stack.said
    assert SECRET not in exported
    assert "Traceback" not in stack.said
    stack("destroy", "--yes")
    assert "trainyard" not in stack("stack", "--show-urns")
