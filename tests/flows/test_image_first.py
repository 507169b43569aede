# SPDX-License-Identifier: Apache-2.0
"""The first image of a stack: the command that `trainyard image push` names makes the repository; then the push
succeeds."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.oci.client.registry import repository_command
from localcloud import control
from tests.support.examples import plan
from tests.support.local_team import Team
from tests.support.registry_client import Tool

STACK = "oci-proof-of-concept"

pytestmark = pytest.mark.engine


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    made = Team(tmp_path, STACK)
    try:
        yield made
    finally:
        made.end()


def test_the_repository_comes_first_then_its_image_then_the_runs(team: Team) -> None:
    asked = shlex.split(repository_command(plan(STACK)))
    assert asked[:4] == ["pulumi", "up", "-s", STACK]
    first = team.attempt("up", STACK, *asked[4:])
    cloud = control.find_running_cloud(team.home / "cloud")
    assert cloud is not None, first.stdout + first.stderr
    assert first.returncode == 0, first.stdout + first.stderr
    assert "ContainerRepository repository created" in first.stdout
    assert "Run" not in first.stdout
    repository = plan(STACK).registry.repository
    pushed = Tool.signed_in(cloud).push(
        f"{cloud.namespace}/{repository}", "0.1", Entrypoint=["python", "-I", "-m", "launcher"]
    )
    assert pushed.status == 201
    rest = team.attempt("up", STACK)
    assert rest.returncode == 0, rest.stdout + rest.stderr
