# SPDX-License-Identifier: Apache-2.0
"""`trainyard drift` finds every change that is made at AWS without Pulumi, with Amazon's own clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from catalog.environments import Need
from localcloud.environments.find import MissingEnvironment, find_environment_for
from tests.support.aws_deployer import PERSON, Deployer
from tests.support.drift_changes_aws import STACK, Changes
from tests.support.drifting import StackUp, some, stack_up
from tests.support.local_team import Team
from tests.support.programs import require_program

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    if isinstance(find_environment_for(Need("pytorch", None, frozenset({"torch"}))), MissingEnvironment):
        pytest.skip("no local environment with PyTorch")
    require_program("ssh-keygen")
    team = Team(tmp_path_factory.mktemp("drift"), STACK)
    team.change("mode: documented", "mode: least-privilege")
    try:
        team.trainyard("up", STACK)
        yield team
    finally:
        team.end()


@pytest.fixture(scope="module")
def up(team: Team) -> StackUp:
    return stack_up(STACK, team.home, team.cloud)


def test_a_deployer_with_the_printed_policies_alone_reads_all_of_it(team: Team, up: StackUp) -> None:
    deployer = Deployer(team)
    # These policies are newer than the stack.
    said = deployer.trainyard("drift", STACK, "--known", f"user {PERSON}")
    deployer.detach()
    assert said == f"{STACK}: no drift: its cloud has what the last `up` made\n"
    assert deployer.refused() == set()
    assert {"iam:GetAccountAuthorizationDetails", "s3:GetBucketAcl"} <= deployer.allowed()


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
