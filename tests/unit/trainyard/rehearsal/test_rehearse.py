# SPDX-License-Identifier: Apache-2.0
"""The report's reason for a job that this machine cannot run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from localcloud.environments.make import Obstacle
from tests.support.examples import STACKS, plan
from trainyard.local import environments
from trainyard.rehearsal.rehearse import DeployedStack, _why_not_rehearsed


def test_an_environment_that_cannot_be_made_is_named_with_the_one_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The message has the command that solves the problem, not one that only prints that command."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    blocked = Obstacle("dask-ml", "it needs Debian packages that are not installed: g++", "apt-get install g++")
    monkeypatch.setattr(environments, "find_obstacle", lambda _: blocked)
    (tmp_path / "code" / "lightgbm").mkdir(parents=True)
    job = plan("oci-dask-lightgbm").jobs["lightgbm"]
    (tmp_path / "examples").symlink_to(STACKS / "examples")
    stage = SimpleNamespace(unisolated="", place=SimpleNamespace(file=tmp_path / "Pulumi.one.yaml"))
    assert _why_not_rehearsed(cast(DeployedStack, stage), job) == (
        "no local environment for dask: its environment `dask-ml` cannot be made on this machine: it needs Debian "
        "packages that are not installed: g++ (apt-get install g++)"
    )
