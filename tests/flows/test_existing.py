# SPDX-License-Identifier: Apache-2.0
"""A second team uses the resources of the first by name. A missing one stops the program before anything is made."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.oci.client.session import Session
from tests.support.local_team import Team, summary

pytestmark = pytest.mark.engine

NAMES = {
    "network": {"subnet": "demo-local-nodes"},
    "bucket": {"existing": "demo-local-training"},
    "registry": {"existing": "demo/training"},
    "logs": {"existing": {"group": "demo-local-training", "log": "demo-local-runs"}},
    "project": {"existing": "demo-local-training"},
    "access": {"existing": True, "runs": "demo-local-runs", "users": {"group": "scientists"}},
    "computeTargets": {"theirs": {"existing": "demo-local-pool"}},
}


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    one = Team(tmp_path)
    one.configure("computeTargets", {"pool": {"shape": {"name": "VM.Standard.E4.Flex", "ocpus": 2, "memoryGb": 16}}})
    try:
        one.trainyard("up", "local")
        yield one
    finally:
        one.end()


def second(team: Team, **changes: Any) -> Path:
    """The file of a stack `guest` that makes a job and its run only."""
    written = yaml.safe_load(team.file.read_text())
    written["config"]["trainyard:environment"] = "guest"
    for key, value in {**NAMES, **changes}.items():
        written["config"][f"trainyard:{key}"] = value
    # Its node is in the first team's subnet, on half of one of its machines.
    written["config"]["trainyard:jobs"]["line"] |= {"computeTarget": "theirs", "layout": "node-groups"}
    file = team.stacks / "Pulumi.guest.yaml"
    file.write_text(yaml.safe_dump(written, sort_keys=False))
    return file


def pulumi(team: Team, *words: str) -> Any:
    file = team.stacks / "Pulumi.guest.yaml"
    return team.pulumi(
        *words, "--stack", "guest", "--config-file", str(file), more={"TRAINYARD_STACKS": str(team.stacks)}
    )


def another_subnet(team: Team, name: str) -> None:
    outputs = json.loads(team.pulumi("stack", "output", "--json", "--stack", "local").stdout)
    client = Session.of({}, team.env()).client("core")
    details = import_module("oci.core.models").CreateSubnetDetails(
        compartment_id=team.cloud.compartment, vcn_id=outputs["vcnId"], cidr_block="10.20.9.0/24", display_name=name
    )
    client.create_subnet(details)


def test_a_second_team_uses_the_first_teams_resources_by_name(team: Team) -> None:
    second(team)
    # The engine writes a new stack's file where it is initialised, so this is not in the checkout.
    (team.stacks / "Pulumi.yaml").write_text("name: trainyard\nruntime: python\n")
    assert team.pulumi("stack", "init", "guest", "--no-select", "--cwd", str(team.stacks)).returncode == 0
    up = pulumi(team, "up", "--yes", "--skip-preview")
    assert summary(up.stdout) == {"created": 6}, up.stdout + up.stderr
    ours, theirs = (
        json.loads(team.pulumi("stack", "output", "--json", "--stack", name).stdout) for name in ("guest", "local")
    )
    for key in ("subnetId", "logGroupId", "logId", "projectId", "bucketUri"):
        assert ours[key] == theirs[key], key
    assert ours["jobs"]["line"]["runs"]["base"]["state"] == "SUCCEEDED"
    assert ours["computeTargetIds"]["theirs"] == theirs["computeTargetIds"]["pool"]

    before = team.in_cloud()
    leaned_on = team.attempt("down", "local")
    assert leaned_on.returncode == 1
    assert "Nothing was removed: other stacks need what local made." in leaned_on.stderr
    for what in ("subnet demo-local-nodes", "compute target demo-local-pool"):
        assert re.search(rf"^  guest +needs .*{what}", leaned_on.stderr, re.MULTILINE), leaned_on.stderr
    assert f"trainyard down guest --local --stacks {team.stacks}" in leaned_on.stderr
    assert team.in_cloud() == before

    file = second(team, bucket={"existing": "nobodys"}, project={"existing": "demo-locl-training"})
    another_subnet(team, "demo-local-nodes")
    refused = pulumi(team, "preview")
    said = refused.stdout + refused.stderr
    assert refused.returncode != 0
    assert f"{file}:" in said
    assert "2 subnets are called `demo-local-nodes`: ocid1.subnet." in said
    assert "did you mean `demo-local-training`?" in said
    assert "the bucket `nobodys`: 404 BucketNotFound" in said
    assert "so nothing was changed" in said
    assert "Traceback" not in said
    down = pulumi(team, "destroy", "--yes", "--skip-preview")
    assert summary(down.stdout) == {"deleted": 6}, down.stdout + down.stderr
