# SPDX-License-Identifier: Apache-2.0
"""Changes that replace machines, and machines that no state has: the warning before, the refusal, and AWS's order of
deletions."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catalog.environments import Need
from localcloud.environments.find import MissingEnvironment, find_environment_for
from tests.support.aws_clients import AwsClients
from tests.support.local_team import Team

pytestmark = pytest.mark.engine

RECORDED = Path(__file__).parents[2] / "upgrade" / "stacks" / "aws-dl1" / "Pulumi.local.yaml"
FOLDER = {"name": "demo-gaudi-training", "keep": False}
OURS = {"stack": "local", "team": "demo", "environment": "gaudi", "managed-by": "trainyard", "job": "resnet"}


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    """A stack of one machine. Nobody waits for its run."""
    if isinstance(find_environment_for(Need("pytorch", None, frozenset({"torch"}))), MissingEnvironment):
        pytest.skip("no local environment with PyTorch")
    one = Team(tmp_path)
    shutil.copy(RECORDED, one.file)
    one.change("roles: { main: 1, worker: 1 }", "roles: { main: 1 }")
    one.change("efa: 4", "efa: 1")
    one.file.write_text(one.file.read_text().partition("        sweep:")[0])
    yield one
    one.end()


@pytest.mark.torture
def test_machines_are_replaced_before_their_network_and_orphans_are_reported(team: Team) -> None:
    team.trainyard("up", "local")
    ec2 = AwsClients(team.cloud)["ec2"]
    (first,) = _machines(ec2)
    _refuses_a_twin(team)
    second = _takes_in_what_a_killed_up_left(team, ec2)

    team.change("{ cidr: 10.40.0.0/16, zone: us-east-1a }", "{ cidr: 10.50.0.0/16, zone: us-east-1c, nat: true }")
    team.change("name: demo-gaudi-training", "name: demo-gaudi-moved")
    told = " ".join(team.trainyard("preview", "local").split())
    assert f"`main-0` ({first['InstanceId']}), `worker-0` ({second})" in told
    for change in (
        "`network.cidr` (10.40.0.0/16 -> 10.50.0.0/16)", "`network.zone` (us-east-1a -> us-east-1c)",
        "`bucket` (demo-gaudi-training -> demo-gaudi-moved)", "all runs start again",
    ):  # fmt: skip
        assert change in told

    done = team.trainyard("up", "local")
    gone = re.findall(r"-- aws:ec2:(\w+) (?:resnet|resnet/\w+-0|subnet) deleted original", done)
    assert gone == ["Instance", "Instance", "LaunchTemplate", "Subnet"], "AWS deletes no subnet under its machines"
    moved = _machines(ec2)
    assert len(moved) == 2
    for one in moved:
        assert one["PrivateIpAddress"].startswith("10.50.")
        assert one["Placement"]["AvailabilityZone"] == "us-east-1c"
    s3 = AwsClients(team.cloud)["s3"]
    assert [one["Name"] for one in s3.list_buckets()["Buckets"]] == ["demo-gaudi-moved"]
    listed = s3.list_objects_v2(Bucket="demo-gaudi-moved", Prefix=".trainyard/clusters/resnet/nodes/")["Contents"]
    assert [one["Key"].rpartition("/")[2] for one in listed] == ["main-0.json", "worker-0.json"], (
        "they serve this bucket"
    )


def _machines(ec2: Any) -> list[dict[str, Any]]:
    alive = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    found = ec2.describe_instances(Filters=alive)["Reservations"]
    return [machine for one in found for machine in one["Instances"]]


def _refuses_a_twin(team: Team) -> None:
    """Another stack of the same team and environment: AWS has one role of that name."""
    twin = team.stacks / "Pulumi.twin.yaml"
    shutil.copy(team.file, twin)
    refused = team.attempt("preview", "twin")
    assert refused.returncode != 0
    assert "role `demo-gaudi-nodes` is of the stack `local`" in " ".join(refused.stdout.split())
    twin.unlink()


def _takes_in_what_a_killed_up_left(team: Team, ec2: Any) -> str:
    """A machine with the stack's tags that its state does not have, as Pulumi's own AWS provider leaves it."""
    (template,) = ec2.describe_launch_templates()["LaunchTemplates"]
    tags = [{"Key": key, "Value": value} for key, value in {**OURS, "node": "worker-0", "rank": "1"}.items()]
    left = ec2.run_instances(
        MinCount=1, MaxCount=1,
        LaunchTemplate={"LaunchTemplateId": template["LaunchTemplateId"], "Version": "1"},
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
    )["Instances"][0]["InstanceId"]  # fmt: skip
    team.change("roles: { main: 1 }", "roles: { main: 1, worker: 1 }")
    refused = team.attempt("preview", "local")
    assert refused.returncode != 0
    assert f"Or end it: `aws ec2 terminate-instances --region us-east-1 --instance-ids {left}`" in refused.stdout
    (words,) = re.findall(r"take it in: `pulumi import --stack local ([^`]*)`", refused.stdout)
    team.trainyard("import", "local", *shlex.split(words))
    team.trainyard("up", "local")
    assert left in {machine["InstanceId"] for machine in _machines(ec2)}
    return str(left)
