# SPDX-License-Identifier: Apache-2.0
"""Examples for machines of AWS come up on the local AWS, and two nodes train: with their image by its public parameter,
their market and their interfaces. tests/torture/test_aws_deployers.py changes them as their printed deployers."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.environments import Need
from components.aws.stack import AwsDl1Stack
from localcloud.environments.find import MissingEnvironment, find_environment_for
from tests.support.aws_clients import AwsClients
from tests.support.counts import drawn
from tests.support.examples import AWS_EXAMPLES, any_stack
from tests.support.local_team import Team
from tests.support.programs import require_program

pytestmark = pytest.mark.engine

# Those of Gaudi have tests of their own. Machines with the interfaces of AWS's page have more kinds of them.
NAMES = [name for name in AWS_EXAMPLES if not name.startswith("aws-dl1-")]


@pytest.mark.parametrize("name", drawn(NAMES, 1))
def test_an_example_of_aws_trains_on_two_nodes(name: str, tmp_path: Path) -> None:
    if isinstance(find_environment_for(Need("pytorch", None, frozenset({"torch"}))), MissingEnvironment):
        pytest.skip("no local environment with PyTorch")
    require_program("ssh-keygen")
    team = Team(tmp_path, name)
    [(key, job)] = team.written("jobs").items()
    # Processors carry one process on each node, in place of one for each accelerator.
    smaller = {"options": {**job["options"], "processes": 1}, "command": "train.py --epochs 1"}
    team.configure("jobs", {key: {**job, **smaller, "runs": {"base": {"until": "finished"}}}})
    try:
        team.trainyard("up", name)
        stack = any_stack(name)
        assert isinstance(stack, AwsDl1Stack)
        spec = stack.jobs[key]
        assert spec.machine is not None
        machines = AwsClients(team.cloud, region=stack.region)["ec2"].describe_instances()["Reservations"]
        instances = [instance for row in machines for instance in row["Instances"]]
        assert [instance["InstanceType"] for instance in instances] == [spec.machine.name] * spec.nodes
        expected = len(spec.machine.interfaces(spec.efa))
        assert [len(instance["NetworkInterfaces"]) for instance in instances] == [expected] * spec.nodes
        place = ("--stacks", str(team.stacks), "--home", str(team.home / "cloud"))
        printed = team.run("runs", "logs", name, f"{key}/base", *place).stdout
        assert "epoch 1 loss" in printed, printed
        assert "unchanged" in team.trainyard("preview", name, "--expect-no-changes")
        assert "Nothing is left" in team.trainyard("down", name, "--yes", "--delete-data")
    finally:
        team.end()
