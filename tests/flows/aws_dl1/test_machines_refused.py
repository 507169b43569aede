# SPDX-License-Identifier: Apache-2.0
"""The messages for a run whose machines AWS does not start again, or Systems Manager does not reach."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from components.aws.client import machines
from localcloud import admin
from localcloud.control import Cloud
from tests.support.aws_cluster import AwsWorld, Cluster, aws_engine
from tests.support.provider_client import Failed
from tests.support.waiting import eventually

RUN = "trainyard:index:Run"
IMAGE, TYPE, ZONE = "ami-0d11a1b2c3d4e5f60", "dl1.24xlarge", "us-east-1a"


class LocalCluster(Cluster):
    """A cluster whose instances are those of the local AWS."""

    def launch(self, *names: str) -> None:
        ec2 = self.world["ec2"]
        vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.7.1.0/24", AvailabilityZone=ZONE)["Subnet"]["SubnetId"]
        for name in names or self.names:
            tags = [{"Key": key, "Value": text} for key, text in (*self.tags.items(), ("node", name))]
            made = ec2.run_instances(
                ImageId=IMAGE, InstanceType=TYPE, MinCount=1, MaxCount=1, SubnetId=subnet,
                TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
            )  # fmt: skip
            self.instances[name] = made["Instances"][0]["InstanceId"]


@pytest.fixture
def cluster(shared_cloud: Cloud) -> Iterator[LocalCluster]:
    environment = shared_cloud.env_for("deployer")
    with patch.dict("os.environ", environment), aws_engine() as engine:
        world = AwsWorld(environment, engine)
        world["s3"].create_bucket(Bucket=world.bucket)
        with world.living(LocalCluster(world, "refused", ("main-0",))) as made:
            yield made
        world["ec2"].terminate_instances(InstanceIds=list(made.instances.values()))


def test_a_run_that_cannot_reach_its_machines_names_the_reason_and_remedy(
    cluster: LocalCluster, shared_cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, instance = cluster.world, cluster.instances["main-0"]
    cluster.ends["base"] = "SUCCEEDED"
    monkeypatch.setattr(machines, "_SECONDS_UNTIL_ONLINE", 0.5)
    waits = {"access": 0.01, "started": 2, "finished": 2}
    admin.add_fault(shared_cloud, "status", status=400, code="InvalidInstanceId", operations="ssm.SendCommand")
    try:
        made = world.engine.create(RUN, "refused", cluster.run(timeouts=waits))
    finally:
        admin.clear_faults(shared_cloud)
    assert made.outputs["state"] == "SUCCEEDED", "the nodes look into the queue themselves"
    assert f"Systems Manager does not reach main-0 ({instance})." in world.engine.heard.everything
    assert "a NAT gateway or endpoints" in world.engine.heard.everything

    world["ec2"].stop_instances(InstanceIds=[instance])
    eventually(lambda: cluster.state("main-0"), lambda state: state == "stopped")
    # A machine reports at each boot.
    world["s3"].delete_object(Bucket=world.bucket, Key=".trainyard/clusters/refused/nodes/main-0.json")
    admin.add_fault(shared_cloud, "no-capacity", shape="dl1.*")
    try:
        with pytest.raises(Failed) as failed:
            world.engine.create(RUN, "again", cluster.run(attempt=2, timeouts=waits))
    finally:
        admin.clear_faults(shared_cloud)
    told = str(failed.value)
    assert f"Start the instances of main-0 ({instance}): InsufficientInstanceCapacity" in told
    assert "has none free in their zone now. Try again later." in told
    assert failed.value.kept is None
    assert len(cluster.tickets()) == 1, "nothing waits for machines that may never come"
    assert cluster.state("main-0") == "stopped"
    assert world.engine.create(RUN, "again", cluster.run(attempt=2, timeouts=waits)).outputs["state"] == "SUCCEEDED"
