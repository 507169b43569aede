# SPDX-License-Identifier: Apache-2.0
"""`trainyard drift` finds every change that is made at OCI without Pulumi, with Oracle's own clients."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any
from unittest.mock import patch

import oci
import pytest

from components.oci.client.session import USER, session_of
from tests.support.cloud_fixture import Clients
from tests.support.drift_changes_oci import Changes
from tests.support.drifting import StackUp, some, stack_up
from tests.support.local_team import Team

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    team = Team(tmp_path_factory.mktemp("drift"))
    try:
        team.trainyard("up", "local")
        yield team
    finally:
        team.end()


@pytest.fixture(scope="module")
def up(team: Team) -> StackUp:
    return stack_up("local", team.home, team.cloud)


@contextmanager
def _policy_of_people(up: StackUp, statements: Sequence[str]) -> Iterator[None]:
    """Gives these statements alone to the local cloud's user."""
    identity, models = Clients(up.cloud).identity, oci.identity.models
    user = session_of(up.cloud, USER).credentials["user"]
    place: dict[str, Any] = {"compartment_id": up.cloud.tenancy, "name": "people", "description": "deployers"}
    group = identity.create_group(models.CreateGroupDetails(**place)).data.id
    details = models.AddUserToGroupDetails(user_id=user, group_id=group)
    membership = identity.add_user_to_group(details).data.id
    policy = identity.create_policy(models.CreatePolicyDetails(**place, statements=list(statements))).data.id
    try:
        with patch.dict("os.environ", up.cloud.env_for(USER)):
            yield
    finally:
        identity.delete_policy(policy)
        identity.remove_user_from_group(membership)
        identity.delete_group(group)


def test_a_deployer_with_the_printed_statements_alone_reads_all_of_it(team: Team, up: StackUp) -> None:
    done = team.run("access", "local", "--stacks", str(team.stacks), "--deployers", "people", "--format", "json")
    assert done.returncode == 0, done.stderr
    rights = json.loads(done.stdout)["deployer"]["rights"]
    # This policy is newer than the stack.
    known = ("--known", "group people")
    with _policy_of_people(up, [right["statement"] for right in rights]):
        assert up.drift(*known) == (0, "local: no drift: its cloud has what the last `up` made\n")
    only_drift = [right for right in rights if right["why"] == ["drift"]]
    assert len(only_drift) > 5
    with _policy_of_people(up, [right["statement"] for right in rights if right not in only_drift]):
        code, said = up.drift(*known)
    assert code == 2, said
    assert "not read the compartment" in said
    assert "not read the network security groups" in said


def test_every_change_outside_of_pulumi_is_found_and_an_unchanged_stack_has_no_drift(up: StackUp) -> None:
    up.stays_silent()
    for change in some(Changes(up).makers(), 6, 100):
        up.finds(change)
    up.is_silent()


def test_equivalent_rules_and_statements_are_no_drift(up: StackUp) -> None:
    changes = Changes(up)

    def twice(before: Any) -> dict[str, Any]:
        """Adds a second service gateway."""
        (rule,) = before.egress_security_rules
        again = copy(rule)
        again.description = "by hand"
        return {"egress_security_rules": [again, rule]}

    def reworded(texts: list[str]) -> list[str]:
        return [text.replace("Allow ", "ALLOW  ").replace(" to ", "  TO ") for text in reversed(texts)]

    undo = [changes._rules(twice), changes._statements(reworded)]
    try:
        up.is_silent()
    finally:
        for one in undo:
            one()
