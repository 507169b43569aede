# SPDX-License-Identifier: Apache-2.0
"""`trainyard drift` finds a run on OpenPAI that was stopped in the portal, and one that was copied there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from catalog.environments import Need
from localcloud.environments.find import MissingEnvironment, find_environment_for
from tests.support.drifting import StackUp, stack_up
from tests.support.local_team import Team
from tests.support.openpai_world import ADMIN, OpenPaiWorld
from tests.support.waiting import eventually

pytestmark = pytest.mark.engine

STACK = "openpai-ddp-gloo"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackUp]:
    if isinstance(find_environment_for(Need("pytorch", None, frozenset({"torch"}))), MissingEnvironment):
        pytest.skip("no local environment with PyTorch")
    team = Team(tmp_path_factory.mktemp("drift"), STACK)
    team.change("--epochs 2", "--epochs 1000")
    try:
        team.trainyard("up", STACK)
        yield stack_up(STACK, team.home, team.cloud)
    finally:
        team.end()


def test_a_copied_job_that_says_it_is_of_the_stack_is_found(up: StackUp) -> None:
    world, job = OpenPaiWorld(up.cloud), up.id_of("Run", "cifar10/base").split("/")[1]
    answer = world.ask("GET", f"/api/v2/jobs/{job}/config", user=ADMIN)
    assert answer.status == 200, answer.content
    copied = yaml.safe_load(answer.content)
    # The name is that of a copy in the portal. What is copied says to be the stack's, and runs something else.
    for role in copied["taskRoles"].values():
        role |= {"instances": 1, "commands": ["sleep 1000"]}
    copy = world.submitted({**copied, "name": f"{job.partition('~')[2]}_1a2b3c4d", "secrets": {}}, user=ADMIN)
    try:
        code, said = up.drift()
    finally:
        world.ask("PUT", f"/api/v2/jobs/{copy}/executionType", {"value": "STOP"}, user=ADMIN)
    assert code == 1, said
    assert f"new      job {copy}, which says that it is the stack's run cifar10/base: no stack declares it" in said
    eventually(up.drift, lambda seen: seen[0] == 0)


def test_a_run_that_was_stopped_by_hand_is_found(up: StackUp) -> None:
    up.stays_silent()
    job = up.id_of("Run", "cifar10/base").split("/")[1]
    answer = OpenPaiWorld(up.cloud).ask("PUT", f"/api/v2/jobs/{job}/executionType", {"value": "STOP"}, user=ADMIN)
    assert answer.status == 202, answer.content
    code, said = eventually(up.drift, lambda seen: seen[0] == 1)
    assert code == 1
    assert "run cifar10/base was cancelled; it was running at the last `up`; a higher `attempt` starts it again" in said
    assert "pulumi up --refresh" not in said, "a refresh starts no run"
