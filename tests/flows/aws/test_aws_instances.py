# SPDX-License-Identifier: Apache-2.0
"""Instances by AWS's own client: they boot what they are told, obey commands, stop, start, and outlive their cloud."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from localcloud import admin, control
from tests.support.aws_clients import AwsClients
from tests.support.cloud_fixture import local_cloud

T = TypeVar("T")
IMAGE, TYPE, ZONE = "ami-0d11a1b2c3d4e5f60", "dl1.24xlarge", "us-east-1a"
USER_DATA = "#cloud-config\nruncmd:\n- echo booted >> /var/lib/boots\n"


def until(ask: Callable[[], T], fits: Callable[[T], bool]) -> T:
    deadline = time.monotonic() + 25
    while not fits(answer := ask()):
        assert time.monotonic() < deadline, answer
        time.sleep(0.05)
    return answer


class Account:
    """A network and its instances."""

    def __init__(self, clients: AwsClients) -> None:
        self.ec2, self.ssm = clients["ec2"], clients["ssm"]
        vpc = self.ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
        self.subnet = self.ec2.create_subnet(VpcId=vpc, CidrBlock="10.7.1.0/24", AvailabilityZone=ZONE)["Subnet"][
            "SubnetId"
        ]
        self.group = self.ec2.create_security_group(VpcId=vpc, GroupName="nodes", Description="nodes")["GroupId"]
        itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": self.group, "Description": "itself"}]}]
        self.ec2.authorize_security_group_ingress(GroupId=self.group, IpPermissions=itself)

    def run(self, count: int) -> list[str]:
        answer = self.ec2.run_instances(
            ImageId=IMAGE, InstanceType=TYPE, MinCount=count, MaxCount=count, UserData=USER_DATA,
            SubnetId=self.subnet, SecurityGroupIds=[self.group],
        )  # fmt: skip
        return [one["InstanceId"] for one in answer["Instances"]]

    def launched(self, instance: str) -> datetime:
        (described,) = self.ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"]
        moment: datetime = described["LaunchTime"]
        return moment

    def state(self, instance: str) -> str:
        (row,) = self.ec2.describe_instances(InstanceIds=[instance])["Reservations"]
        return str(row["Instances"][0]["State"]["Name"])

    def online(self, *instances: str) -> None:
        wanted = [{"Key": "InstanceIds", "Values": list(instances)}]

        def rows() -> list[str]:
            listed = self.ssm.describe_instance_information(Filters=wanted)["InstanceInformationList"]
            return [row["InstanceId"] for row in listed if row["PingStatus"] == "Online"]

        until(rows, lambda seen: set(seen) == set(instances))

    def command(self, instance: str, *lines: str) -> Any:
        sent = self.ssm.send_command(
            InstanceIds=[instance], DocumentName="AWS-RunShellScript", Parameters={"commands": list(lines)}
        )
        wanted = {"CommandId": sent["Command"]["CommandId"], "InstanceId": instance}
        ended = ("Success", "Failed", "Cancelled", "TimedOut")
        return until(lambda: self.ssm.get_command_invocation(**wanted), lambda row: row["Status"] in ended)


def test_a_life_of_instances(tmp_path: Path) -> None:
    home = tmp_path / "cloud"
    with local_cloud(home) as cloud:
        account = Account(AwsClients(cloud))
        first, second = account.run(2)
        account.online(first, second)
        assert account.state(first) == "running"
        done = account.command(first, "cat /var/lib/boots; id -u; exit 3")
        assert (done["Status"], done["ResponseCode"], done["StandardOutputContent"]) == ("Failed", 3, "booted\n0\n")
        account.ec2.stop_instances(InstanceIds=[second])
        until(lambda: account.state(second), lambda state: state == "stopped")
        # The cloud is killed, and comes back: what ran runs again, with its disk; what was stopped stays so.
        account.command(first, "echo kept > /root/kept")
        os.kill(cloud.pid, signal.SIGKILL)
        account = again(account, AwsClients(control.start(home)))
        account.online(first)
        assert account.command(first, "cat /root/kept")["StandardOutputContent"] == "kept\n"
        assert account.state(second) == "stopped"
        launched = account.launched(second)
        account.ec2.start_instances(InstanceIds=[second])
        account.online(first, second)
        assert account.launched(second) > launched, "so that a report of an earlier boot is told from a new one"
        assert account.command(second, "cat /var/lib/boots")["StandardOutputContent"] == "booted\n"
        seen = admin.read_evidence(control.running(home) or cloud, second)
        assert {row["description"] for row in seen["rules"]} >= {"itself"}
        account.ec2.terminate_instances(InstanceIds=[first, second])
        until(lambda: list((home / "machines").glob("i-*")), lambda left: not left)


def again(account: Account, clients: AwsClients) -> Account:
    account.ec2, account.ssm = clients["ec2"], clients["ssm"]
    return account
