# SPDX-License-Identifier: Apache-2.0
"""Instances, through AWS's own client: they run their user data and commands, stop, start, and survive a kill of the
cloud."""

from __future__ import annotations

import json
import os
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from localcloud import admin, control
from tests.support.aws_clients import AwsClients, refused
from tests.support.cloud_fixture import local_cloud
from tests.support.console_reader import console_runs, console_sections, read_console
from tests.support.waiting import eventually

IMAGE, TYPE, ZONE = "ami-0d11a1b2c3d4e5f60", "dl1.24xlarge", "us-east-1a"
USER_DATA = "#cloud-config\nruncmd:\n- echo booted >> /var/lib/boots\n"


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

        eventually(rows, lambda seen: set(seen) == set(instances))

    def command(self, instance: str, *lines: str) -> Any:
        sent = self.ssm.send_command(
            InstanceIds=[instance], DocumentName="AWS-RunShellScript", Parameters={"commands": list(lines)}
        )
        wanted = {"CommandId": sent["Command"]["CommandId"], "InstanceId": instance}
        ended = ("Success", "Failed", "Cancelled", "TimedOut")
        return eventually(lambda: self.ssm.get_command_invocation(**wanted), lambda row: row["Status"] in ended)


def test_instances_start_run_commands_stop_and_terminate(tmp_path: Path) -> None:
    home = tmp_path / "cloud"
    with local_cloud(home) as cloud:
        account = Account(AwsClients(cloud))
        first, second = account.run(2)
        account.online(first, second)
        assert account.state(first) == "running"
        done = account.command(first, "cat /var/lib/boots; id -u; exit 3")
        assert (done["Status"], done["ResponseCode"], done["StandardOutputContent"]) == ("Failed", 3, "booted\n0\n")
        account.ec2.stop_instances(InstanceIds=[second])
        eventually(lambda: account.state(second), lambda state: state == "stopped")
        # The cloud is killed and started again: running instances run again with their disks, stopped ones stay
        # stopped.
        account.command(first, "echo kept > /root/kept")
        os.kill(cloud.pid, signal.SIGKILL)
        account = again(account, AwsClients(control.start_cloud(home)))
        account.online(first)
        assert account.command(first, "cat /root/kept")["StandardOutputContent"] == "kept\n"
        assert account.state(second) == "stopped"
        launched = account.launched(second)
        account.ec2.start_instances(InstanceIds=[second])
        account.online(first, second)
        assert account.launched(second) > launched, "so that a report of an earlier boot is told from a new one"
        assert account.command(second, "cat /var/lib/boots")["StandardOutputContent"] == "booted\n"
        seen = admin.read_evidence(control.find_running_cloud(home) or cloud, second)
        assert {row["description"] for row in seen["rules"]} >= {"itself"}
        account.ec2.terminate_instances(InstanceIds=[first, second])
        eventually(lambda: list((home / "machines").glob("i-*")), lambda left: not left)


def again(account: Account, clients: AwsClients) -> Account:
    account.ec2, account.ssm = clients["ec2"], clients["ssm"]
    return account


def test_changes_of_existing_resources_are_read_back_or_refused(aws: AwsClients) -> None:
    ec2 = aws["ec2"]
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    own = [{"ResourceType": "launch-template", "Tags": [{"Key": "own", "Value": "1"}]}]
    made = ec2.create_launch_template(LaunchTemplateName="tags", LaunchTemplateData={}, TagSpecifications=own)
    template = made["LaunchTemplate"]["LaunchTemplateId"]
    versions = ec2.describe_launch_template_versions(LaunchTemplateId=template)["LaunchTemplateVersions"]
    assert not versions[0]["LaunchTemplateData"].get("TagSpecifications")
    group = ec2.create_placement_group(GroupName="tags", Strategy="cluster")["PlacementGroup"]["GroupId"]
    reservation = ec2.create_capacity_reservation(
        InstanceType="dl1.24xlarge", InstancePlatform="Linux/UNIX", AvailabilityZone="us-east-1a", InstanceCount=1,
        InstanceMatchCriteria="targeted", EndDateType="limited", EndDate="2030-01-01T00:00:00Z",
    )["CapacityReservation"]["CapacityReservationId"]  # fmt: skip
    ec2.create_tags(Resources=[template, group, reservation], Tags=[{"Key": "later", "Value": "2"}])
    ec2.delete_tags(Resources=[template], Tags=[{"Key": "own"}])
    ec2.modify_capacity_reservation(CapacityReservationId=reservation, EndDateType="unlimited")
    shown = [
        ec2.describe_launch_templates(LaunchTemplateIds=[template])["LaunchTemplates"][0],
        ec2.describe_placement_groups(GroupIds=[group])["PlacementGroups"][0],
        ec2.describe_capacity_reservations(CapacityReservationIds=[reservation])["CapacityReservations"][0],
    ]
    assert [one["Tags"] for one in shown] == [[{"Key": "later", "Value": "2"}]] * 3
    assert "EndDate" not in shown[2]
    for gone in ("pg-0123456789abcdef0", "cr-0123456789abcdef0"):
        assert refused(ec2.create_tags, Resources=[gone], Tags=[{"Key": "a", "Value": "b"}])[0].endswith("NotFound")
    endpoint = ec2.create_vpc_endpoint(VpcId=vpc, ServiceName="com.amazonaws.us-east-1.s3")["VpcEndpoint"]
    assert ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint["VpcEndpointId"]])["Unsuccessful"] == []
    ec2.delete_placement_group(GroupName="tags")
    ec2.cancel_capacity_reservation(CapacityReservationId=reservation)


def test_the_console_survives_invalid_queue_objects(aws: AwsClients) -> None:
    s3, logs, bucket = aws["s3"], aws["logs"], "console-runs"
    hostile = "\x1b[2J<img src=x>" + "x" * 9000

    def put(name: str, content: Any) -> None:
        s3.put_object(Bucket=bucket, Key=name, Body=content if isinstance(content, str) else json.dumps(content))

    s3.create_bucket(Bucket=bucket)
    logs.create_log_group(logGroupName="/console")
    now = datetime.now(UTC)
    launch = json.dumps({"folder": f"s3://{bucket}/resnet/base/1", "attempt": 3})
    node = {"name": "main-0", "role": "main", "rank": 0, "environment": {"TRAINYARD_LAUNCH": launch, "KEY": "s3cret"}}
    ticket = {"version": 1, "run": "base", "tags": {"job": "resnet", "run": "base"}, "createdAt": now.isoformat(),
              "logGroup": "/console", "nodes": [node]}  # fmt: skip
    strange = {"name": "..", "rank": "first", "role": 7, "environment": ["A"]}
    queue = ".trainyard/clusters/resnet/queue/0000000"
    put(f"{queue}1.json", ticket)
    put(
        f"{queue}2.json", {**ticket, "tags": {"job": hostile, "run": hostile}, "createdAt": "0001-01-01T00:00:00+14:00"}
    )
    put(f"{queue}3.json", {**ticket, "tags": [], "region": "nowhere", "createdAt": 7, "nodes": [strange]})
    put(f"{queue}4.json", "[" * 5000)
    starts = ".trainyard/clusters/resnet/starts/00000001/main-0.json"
    put(starts, {"state": "SUCCEEDED", "startedAt": now.isoformat(), "finishedAt": now.isoformat()})
    for step in range(3):
        put("resnet/base/1/s00000001/status/0.json", {"state": "succeeded", "progress": {"step": step, "loss": 1.5}})
    stream = {"logGroupName": "/console", "logStreamName": "resnet/base/s00000001/main-0"}
    logs.create_log_stream(**stream)
    event = {"timestamp": int(now.timestamp() * 1000), "message": f"[main-0] {hostile}"}
    logs.put_log_events(**stream, logEvents=[event])

    eventually(lambda: len(console_sections(aws.cloud)["Runs"]), lambda count: count == 3)
    runs = console_runs(aws.cloud)
    run = runs["resnet/base"]
    assert (run["state"], run["attempt"], dict(run["facts"])["variables"]) == ("SUCCEEDED", 3, "KEY, TRAINYARD_LAUNCH")
    assert run["curves"]["ranks"][0]["steps"] == [0, 1, 2]
    remembered = admin.read_progress(aws.cloud, bucket, "resnet/base/1/s00000001")
    assert [point.step for point in remembered[0]] == [0, 1, 2], "as `runs watch` asks for it"
    assert [line[:9] for line in run["lines"]] == ["<img src="], "drawn as on a terminal; the page escapes it"
    assert "s3cret" not in json.dumps(runs)
    assert len(json.dumps(runs)) < 20_000
    assert {title[:4] for title in runs} == {"resn", hostile[:4], "base"}
    assert runs["base"]["ranks"][0]["note"] == "it has no instance"
    tags = ".".join(section["tag"] for section in read_console(aws.cloud, "data")["sections"])
    again = read_console(aws.cloud, f"data?have={tags}")["sections"]
    assert [one["title"] for one in again if "items" in one or "runs" in one] in ([], ["Last calls"])


PEERS = {
    "CidrIpv4": ("10.1.0.0/16", "10.2.0.0/16"), "CidrIpv6": ("fd00::/64", "fd01::/64"),
    "PrefixListId": ("pl-0123456789abcdef0", "pl-0123456789abcdef1"),
}  # fmt: skip
LISTS = {"CidrIpv4": ("IpRanges", "CidrIp"), "CidrIpv6": ("Ipv6Ranges", "CidrIpv6"),
         "PrefixListId": ("PrefixListIds", "PrefixListId")}  # fmt: skip


def test_a_rule_can_change_only_to_a_peer_of_the_same_kind(aws: AwsClients) -> None:
    ec2 = aws["ec2"]
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    group = ec2.create_security_group(GroupName="peers", Description="peers", VpcId=vpc)["GroupId"]
    plain = {"IpProtocol": "tcp", "FromPort": 1, "ToPort": 2}
    for kind, (first, second) in PEERS.items():
        listed, member = LISTS[kind]
        permission = {**plain, listed: [{member: first}]}
        made = ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[permission])
        rule = made["SecurityGroupRules"][0]["SecurityGroupRuleId"]

        def change(kind: str, peer: str, rule: str = rule) -> dict[str, Any]:
            changed = {"SecurityGroupRuleId": rule, "SecurityGroupRule": {**plain, kind: peer}}
            return {"GroupId": group, "SecurityGroupRules": [changed]}

        ec2.modify_security_group_rules(**change(kind, second))
        for other in PEERS.keys() - {kind}:
            code = refused(ec2.modify_security_group_rules, **change(other, PEERS[other][0]))[0]
            assert code == "InvalidParameterValue"
        seen = ec2.describe_security_group_rules(SecurityGroupRuleIds=[rule])["SecurityGroupRules"][0]
        assert {name: seen[name] for name in PEERS if name in seen} == {kind: second}
