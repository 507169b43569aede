# SPDX-License-Identifier: Apache-2.0
"""Both plugins with the real engine: a stack with a run is made on the local cloud, changed, fails, and is
destroyed."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from localcloud import admin, control
from tests.support.cloud_fixture import Clients, local_cloud
from tests.support.cloud_world import runs_may_log
from tests.support.waiting import eventually
from trainyard.engine.obtain import local_stack_environment

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
        self.env = {**local_stack_environment(root / "home"), **cloud.env, "PULUMI_OPTION_COLOR": "never"}
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

    @contextmanager
    def going_on(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Starts a command in the background. All of its processes are ended after the block."""
        with subprocess.Popen(
            ["pulumi", "--non-interactive", *words], cwd=self.folder, env=self.env, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
        ) as process:  # fmt: skip
            try:
                yield process
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[control.Cloud]:
    with local_cloud(tmp_path / "cloud") as started:
        runs_may_log(Clients(started))
        yield started


@pytest.mark.torture
def test_a_stack_with_a_run_is_made_changed_fails_and_recovers(tmp_path: Path, cloud: control.Cloud) -> None:
    stack = Stack(tmp_path, cloud)
    up = stack("up", "--yes")
    assert "trainyard:index:Run" in up
    assert "SUCCEEDED" in up
    stack("up", "--yes", "--refresh", "--expect-no-changes")

    stack.set("team", "speech")
    assert "1 updated" in stack("up", "--yes", "--skip-preview")

    stack.set("exit", "3")
    failed = stack("up", "--yes", "--skip-preview", code=1)
    assert "exited with code 3" in failed
    assert "training with [secret]" in failed
    again = stack("up", "--yes", "--skip-preview", code=1)
    assert "exited with code 3" in again

    stack.set("exit", "0")
    assert "SUCCEEDED" in stack("up", "--yes", "--skip-preview")
    stack("preview", "--expect-no-changes")

    exported = stack("stack", "export")
    assert SECRET not in stack.said
    assert SECRET not in exported
    assert "Traceback" not in stack.said
    stack("destroy", "--yes", "--skip-preview")
    assert "trainyard" not in stack("stack", "--show-urns")


def job_runs(cloud: control.Cloud) -> list[Any]:
    """All runs, the oldest first."""
    listed = Clients(cloud).data_science.list_job_runs(cloud.compartment).data
    return sorted(listed, key=lambda run: run.time_accepted)


def state_is(cloud: control.Cloud, number: int, state: str) -> None:
    eventually(lambda: job_runs(cloud)[number].lifecycle_state, lambda found: found == state, _SECONDS)


@pytest.mark.torture
def test_a_run_that_is_replaced_has_ended_before_the_new_one_starts(tmp_path: Path, cloud: control.Cloud) -> None:
    """A replacement that is killed while the old run ends, killed before the new run is made, interrupted, and forced
    by --replace."""
    stack, up = Stack(tmp_path, cloud), ("up", "--yes", "--skip-preview")
    for key, value in (("seconds", "900"), ("until", "started")):
        stack.set(key, value)
    stack(*up)

    stack.set("epochs", "2")
    with stack.going_on(*up):
        state_is(cloud, 0, "CANCELING")
    stack("cancel", "--yes")
    stack(*up)
    assert len(job_runs(cloud)) == 2

    stack.set("epochs", "3")
    fault = admin.add_fault(cloud, "status", operations="CreateJobRun", status=503)
    with stack.going_on(*up):
        eventually(lambda: admin.list_faults(cloud)[0]["done"], bool, _SECONDS)
        assert job_runs(cloud)[1].lifecycle_state == "CANCELED"
    admin.clear_faults(cloud, fault["id"])
    stack("cancel", "--yes")
    stack(*up)
    assert len(job_runs(cloud)) == 3

    stack.set("epochs", "4")
    with stack.going_on(*up) as process:
        state_is(cloud, 2, "CANCELING")
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=_SECONDS)[0]
        assert process.returncode != 0, said
        assert "run run: cancelled; waiting until it has ended" in said
        assert "Traceback" not in said
    stack(*up)
    # For --replace, the engine does not ask the provider for the order, so the program sets it, as our components do.
    stack.set("deleteFirst", "true")
    (urn,) = [word for word in stack("stack", "--show-urns").split() if word.endswith("trainyard:index:Run::run")]
    stack(*up, "--replace", urn)

    runs = job_runs(cloud)
    assert [run.lifecycle_state for run in runs] == [*["CANCELED"] * 4, "IN_PROGRESS"]
    for old, new in pairwise(runs):
        assert old.time_finished <= new.time_accepted, "nodes of two starts at once would be paid for twice"
    stack("preview", "--expect-no-changes")
    stack("destroy", "--yes", "--skip-preview")
