# SPDX-License-Identifier: Apache-2.0
"""Stacks on AWS are made, changed and destroyed by a deployer with the policies that `trainyard access` prints.

The local AWS refuses everything else. Each example, variations of one, and every machine of the catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from catalog.aws import accelerator_of_machine, aws_machine
from catalog.tables import table
from tests.support.aws_deployer import PERSON, Deployer
from tests.support.counts import FIRST, drawn, wanted
from tests.support.examples import AWS_EXAMPLES
from tests.support.local_team import Team

pytestmark = [pytest.mark.engine, pytest.mark.torture]

CHANGES = wanted(sample=3, full=25)
RESNET = "aws-dl1-resnet"
# Every machine of the catalog, with the image that AWS publishes for it, or with that of the examples.
MACHINES = list(table("aws_machines")["machines"])
# The differences of a variation from the example: in the stack, and in its job's cluster.
VARIATIONS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    # Nodes with public addresses use an internet gateway, so no change may add a NAT gateway for them.
    "1 EFA, an address for each": (
        {"network": {"cidr": "10.40.0.0/16"}}, {"efa": 1, "publicAddress": "automatic"},
    ),
    "2 EFA, an Elastic IP": ({"network": {"cidr": "10.40.0.0/16"}}, {"efa": 2, "publicAddress": "elastic"}),
    "3 EFA behind NAT": ({"network": {"cidr": "10.40.0.0/16", "nat": True}}, {"efa": 3}),
    "an existing VPC": ({"network": {"vpc": "vpc-0c0a1b2c3d4e5f607", "subnetCidr": "10.60.1.0/24"}}, {}),
    "an existing registry": ({"registry": {"existing": "company/gaudi"}}, {}),
    "an existing bucket": ({"bucket": {"existing": "company-training"}}, {}),
    "spot": ({}, {"spot": True}),
    "reserved": ({}, {"reservation": "cr-0c0a1b2c3d4e5f603"}),
    "the network of another stack": (
        {"network": None, "uses": {"stack": "organization/trainyard/aws-dl1-net", "take": ["network"]}}, {},
    ),
    "documented": ({"access": {"mode": "documented", "users": {"role": "vision-scientist"}}}, {}),
    "documented, a group within a boundary": ({"access": {
        "mode": "documented", "users": {"group": "vision-scientists"},
        "permissionsBoundary": "arn:aws:iam::123456789012:policy/company-boundary",
    }}, {}),
    "proof of concept": (
        {"environment": "dev", "access": {"mode": "proof-of-concept", "users": {"group": "vision-scientists"}}}, {},
    ),
}  # fmt: skip
# Possible values, by key of the stack file. Keys that a variation sets are not changed.
VALUES: Mapping[str, tuple[Any, ...]] = {
    "logs": ({"retentionDays": 30}, {"retentionDays": 60}, {"retentionDays": 90}),
    "tags": ({"cost": "1"}, {"cost": "2"}, {"cost": "1", "owner": "ana"}, {}),
    "network": ({"cidr": "10.40.0.0/16", "nat": True}, {"cidr": "10.40.0.0/16"}),
    "access": (
        {"mode": "least-privilege", "users": {"group": "vision-scientists"}},
        {"mode": "documented", "users": {"group": "vision-scientists"}},
    ),
}
WORKERS, PORTS, DISKS = (1, 2), (3022, 4022), (500, 600)


def _life(team: Team, fixed: Mapping[str, Any], random: Random, note: Callable[[str, object], None]) -> None:
    deployer = Deployer(team, stands_in=True)
    try:
        deployer.trainyard("up", deployer.name)
        for _ in range(CHANGES):
            note(*_changed(team, fixed, random))
            deployer.trainyard("up", deployer.name)
            assert deployer.refused() == set()
        assert "unchanged" in deployer.trainyard("preview", deployer.name, "--expect-no-changes")
        assert "no drift" in deployer.trainyard("drift", deployer.name, "--known", f"user {PERSON}")
        deployer.trainyard("down", deployer.name, "--yes")
        assert deployer.refused() == set()
    finally:
        team.end()


def _changed(team: Team, fixed: Mapping[str, Any], random: Random) -> tuple[str, object]:
    """Draws a change of the stack file, and makes it."""
    own = team.file.stem != f"Pulumi.{RESNET}"
    free = [key for key in VALUES if key not in fixed and not (own and key in ("network", "access"))]
    key = random.choice([*free, "jobs"])
    if key != "jobs":
        value = random.choice(VALUES[key])
        team.configure(key, value)
        return key, value
    [(name, job)] = team.written("jobs").items()
    if random.random() < 0.5 and "worker" in job["roles"]:
        job["roles"]["worker"] = random.choice(WORKERS)
    elif random.random() < 0.5:
        job["cluster"]["sshPort"] = random.choice(PORTS)
    else:
        job["blockStorageGb"] = random.choice(DISKS)
    team.configure("jobs", {name: job})
    return name, job


def _without_runs(team: Team, cluster: Mapping[str, Any]) -> None:
    """Without runs: these need the users' permissions, which `rehearse` tests. The account's quota allows one more
    machine."""
    [(name, job)] = team.written("jobs").items()
    machine = aws_machine(job["shape"])
    assert machine is not None
    team.configure("quota", {"vcpus": (1 + sum(job["roles"].values())) * machine.vcpus})
    team.configure("jobs", {name: {**job, "cluster": {**job["cluster"], **cluster}, "runs": {}}})


@pytest.mark.parametrize("name", AWS_EXAMPLES)
def test_an_examples_deployer_can_make_change_and_destroy_it(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    team = Team(tmp_path, name)
    _without_runs(team, {})
    _life(team, {}, Random(FIRST), record_property)


@pytest.mark.parametrize("machine", drawn(MACHINES, 1))
def test_the_deployer_of_any_machine_can_make_and_destroy_it(machine: str, tmp_path: Path) -> None:
    team = Team(tmp_path, "aws-small")
    accelerator = accelerator_of_machine(machine)
    assert accelerator is not None
    [(name, job)] = team.written("jobs").items()
    image = accelerator.name if accelerator.ami else "ami-0d11a1b2c3d4e5f60"
    team.configure("jobs", {name: {**job, "shape": machine, "options": {}, "blockStorageGb": 100}})
    _without_runs(team, {"ami": image})
    deployer = Deployer(team, stands_in=True)
    try:
        deployer.trainyard("up", deployer.name)
        assert "unchanged" in deployer.trainyard("preview", deployer.name, "--expect-no-changes")
        deployer.trainyard("down", deployer.name, "--yes")
        assert deployer.refused() == set()
    finally:
        team.end()


@pytest.mark.parametrize("name", VARIATIONS)
def test_a_variations_deployer_can_make_change_and_destroy_it(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    stack, cluster = VARIATIONS[name]
    team = Team(tmp_path, RESNET)
    if "uses" in stack:
        giving = yaml.safe_load(team.file.read_text())
        giving["config"] |= {"trainyard:environment": "net", "trainyard:jobs": {}}
        for own in ("bucket", "registry"):
            del giving["config"][f"trainyard:{own}"]
        (team.stacks / "Pulumi.aws-dl1-net.yaml").write_text(yaml.safe_dump(giving))
        team.trainyard("up", "aws-dl1-net")
    for key, value in stack.items():
        team.configure(key, value)
    _without_runs(team, cluster)
    _life(team, stack, Random(FIRST), record_property)
