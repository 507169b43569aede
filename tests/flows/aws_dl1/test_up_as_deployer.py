# SPDX-License-Identifier: Apache-2.0
"""The policies that `trainyard access` prints for the deployer and the nodes are enough to make, change and destroy a
stack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from components.aws.access_report import deployer_policies
from components.aws.iam.decide import AwsPrincipal, InForce, Need, decide_aws_call
from components.aws.iam.documents import PolicyDocument, statements_of
from components.aws.plan import aws_dl1_plan
from components.aws.statements import AwsPolicy, aws_policies
from components.plan.build import plan_of
from localcloud import admin, control
from schemas.judge import judge_file
from tests.support.aws_deployer import Deployer
from tests.support.examples import stack_file
from tests.support.local_team import Team

pytestmark = pytest.mark.engine
NAME = "aws-dl1-resnet"
ROOT = Path(__file__).parents[3]
# Calls that only the local cloud's commands make: for stand-ins, and to empty a bucket.
LOCAL_ONLY = {"iam:CreateGroup", "iam:GetGroup", "ecr:ListImages", "s3:ListBucketVersions"}


@pytest.mark.torture
def test_with_the_printed_policies_alone_a_stack_comes_up_changes_and_goes_down(tmp_path: Path) -> None:
    team = Team(tmp_path, NAME)
    try:
        # Without runs: these need the users' permissions.
        team.configure("jobs", {"resnet": {**team.written("jobs")["resnet"], "runs": {}}})
        deployer = Deployer(team)
        deployer.trainyard("up", NAME)
        team.configure("logs", {"retentionDays": 60})
        team.configure("tags", {"cost": "42"})
        deployer.trainyard("up", NAME)
        team.configure("network", {"cidr": "10.40.0.0/16", "zone": "us-east-1a", "nat": True})
        deployer.trainyard("up", NAME)
        assert "unchanged" in deployer.trainyard("preview", NAME, "--expect-no-changes")
        deployer.trainyard("down", NAME, "--yes")
        assert deployer.refused() == set()
        assert {"ec2:RunInstances", "iam:CreateRole", "s3:CreateBucket", "ec2:DeleteVpc"} <= deployer.allowed()
    finally:
        team.end()


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, Any]]]:
    """Every call of an `up` and a `down` for which access was checked."""
    home = tmp_path_factory.mktemp("deployed")
    env = {**os.environ, "TRAINYARD_HOME": str(home)}

    def trainyard(*words: str) -> None:
        command = [sys.executable, "-m", "trainyard", *words]
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

    try:
        trainyard("up", NAME, "--local")
        trainyard("down", NAME, "--local", "--yes")
        # The stack keeps its bucket, so its cloud goes on.
        cloud = control.find_running_cloud(home / "cloud")
        assert cloud is not None
        yield admin.list_calls(cloud, of="aws")
    finally:
        control.stop_cloud(home / "cloud")


def in_force(made: Sequence[AwsPolicy]) -> InForce:
    documents = [one.document for one in made if one.document]
    return InForce([PolicyDocument("least", statements_of(json.dumps(one))) for one in documents])


@pytest.mark.torture
def test_no_call_of_deployer_and_nodes_needs_more(rows: list[dict[str, Any]]) -> None:
    plan = aws_dl1_plan(plan_of(judge_file(stack_file(NAME))))
    least = {
        "user": in_force(deployer_policies(plan)),
        "role": in_force([one for one in aws_policies(plan) if one.who == "runs"]),
    }
    assert {row["principal"]["type"] for row in rows} == {"user", "role"}
    missing = set()
    for row in rows:
        principal = AwsPrincipal(row["principal"]["id"], user=row["principal"]["name"])
        keys = {name: tuple(values) for name, values in row["target"]["variables"].items()}
        need = Need(row["permissions"][0], row["target"]["resource"], keys)
        if (
            not decide_aws_call(need, principal, least[row["principal"]["type"]]).allowed
            and need.action not in LOCAL_ONLY
        ):
            missing.add((row["principal"]["type"], need.action, need.resource))
    assert missing == set()
