# SPDX-License-Identifier: Apache-2.0
"""`trainyard drift` finds every change that is made at AWS without Pulumi, with Amazon's own clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localcloud.aws.hosts.machine_assignments import machine_environments
from tests.support.drift_changes_aws import STACK, Changes
from tests.support.drifting import StackUp, some, stack_up
from tests.support.local_team import Team
from tests.support.programs import require_program

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackUp]:
    if not machine_environments():
        pytest.skip("no local environment with PyTorch")
    require_program("ssh-keygen")
    team = Team(tmp_path_factory.mktemp("drift"), STACK)
    team.change("mode: documented", "mode: least-privilege")
    try:
        team.trainyard("up", STACK)
        yield stack_up(STACK, team.home, team.cloud)
    finally:
        team.end()


def test_every_change_outside_of_pulumi_is_found_and_an_unchanged_stack_has_no_drift(up: StackUp) -> None:
    up.stays_silent()
    changes = Changes(up)
    for change in some(changes.makers(), 6, 100):
        up.finds(change)
    up.is_silent()
    _cannot_come_back(up, changes)


def _cannot_come_back(up: StackUp, changes: Changes) -> None:
    """A rule that is made again has another id, a machine that has ended stays so, and moto keeps one more version of a
    secret as current."""
    secret = up.id_of("Secret", "resnet/ssh")
    changes.clients["secretsmanager"].put_secret_value(SecretId=secret, SecretString="another")
    rule = up.id_of("SecurityGroupIngressRule", "nodes-from-nodes")
    changes.ec2.revoke_security_group_ingress(GroupId=changes.group, SecurityGroupRuleIds=[rule])
    machine = up.id_of("Instance", "resnet/main-0")
    changes.ec2.terminate_instances(InstanceIds=[machine])
    code, said = up.drift()
    assert code == 1
    assert "instance resnet/main-0 is gone" in said
    assert "nodes-from-nodes is gone" in said
    assert "secret version resnet/ssh: id: arn:aws:secretsmanager:" in said
