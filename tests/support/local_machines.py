# SPDX-License-Identifier: Apache-2.0
"""Machines of a cluster on the local cloud, made as the deployment makes them, with user data, role, bucket and SSH
key."""

from __future__ import annotations

import io
import json
import tarfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from components.aws.node_setup import NodeSettings, user_data
from tests.support.aws_clients import AwsClients
from tests.support.machine_cluster import GROUP, JOB, KEY_SECRET, LAUNCHER, ROOT, launcher_archive
from tests.support.programs import make_ssh_key
from tests.support.waiting import eventually

BUCKET, IMAGE, ZONE = "vision-dev-runs", "ami-0d11a1b2c3d4e5f60", "us-east-1a"
CODE = ".trainyard/code/resnet-0123456789abcdef.tar.gz"
TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
MAY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": ["s3:*", "secretsmanager:*", "logs:*", "ecr:*"], "Resource": "*"}],
}


@dataclass(frozen=True)
class Earlier:
    """The launcher of an earlier release, and a function for its user data."""

    launcher: Path
    user_data: str


class LocalMachines:
    """One instance for each node. `files`: the job's code. `slow`: by how many seconds a node boots later. `earlier`:
    the release that made the machines, if it was not this one."""

    def __init__(
        self, clients: AwsClients, home: Path, nodes: Sequence[str], files: Mapping[str, str],
        slow: Mapping[str, float] = MappingProxyType({}), earlier: Earlier | None = None,
    ) -> None:  # fmt: skip
        self.clients, self.home, self.nodes = clients, home, tuple(nodes)
        self.s3, self.ec2 = clients["s3"], clients["ec2"]
        self._prepare(files, earlier.launcher if earlier else ROOT / "launcher")
        told = NodeSettings(
            region="us-east-1", bucket=BUCKET, job=JOB, launcher=LAUNCHER, code=CODE, log_group=GROUP,
            ssh_secret=KEY_SECRET, image="registry/train:1", release="1.15.1", efa_interfaces=1,
            stop_when_idle_minutes=30,
        )  # fmt: skip
        self.user_data = _made_by(earlier, told) if earlier else user_data(told)
        vpc = self.ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
        self.subnet = self.ec2.create_subnet(VpcId=vpc, CidrBlock="10.7.1.0/24", AvailabilityZone=ZONE)["Subnet"][
            "SubnetId"
        ]
        gateway = self.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        self.ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
        wanted = [{"Name": "vpc-id", "Values": [vpc]}]
        table = self.ec2.describe_route_tables(Filters=wanted)["RouteTables"][0]["RouteTableId"]
        self.ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
        self.group = self.ec2.create_security_group(VpcId=vpc, GroupName="nodes", Description="nodes")["GroupId"]
        itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": self.group}]}]
        self.ec2.authorize_security_group_ingress(GroupId=self.group, IpPermissions=itself)
        self.began = time.monotonic()
        self.instances = {node: self._start(node, rank, slow.get(node, 0.0)) for rank, node in enumerate(self.nodes)}

    def _prepare(self, files: Mapping[str, str], launcher: Path) -> None:
        iam, secrets = self.clients["iam"], self.clients["secretsmanager"]
        iam.create_role(RoleName="nodes", AssumeRolePolicyDocument=json.dumps(TRUST))
        iam.put_role_policy(RoleName="nodes", PolicyName="nodes", PolicyDocument=json.dumps(MAY))
        iam.create_instance_profile(InstanceProfileName="nodes")
        iam.add_role_to_instance_profile(InstanceProfileName="nodes", RoleName="nodes")
        self.s3.create_bucket(Bucket=BUCKET)
        self.s3.put_object(Bucket=BUCKET, Key=LAUNCHER, Body=launcher_archive(launcher))
        self.s3.put_object(Bucket=BUCKET, Key=CODE, Body=archive(files))
        secrets.create_secret(Name=KEY_SECRET, SecretString=make_ssh_key(self.home / "id_rsa", 4096))
        hidden = {"WANDB_API_KEY": "hush-hush-hush", "CERTIFICATE": "one\ntwo"}
        secrets.create_secret(Name="run-1", SecretString=json.dumps(hidden))
        self.clients["logs"].create_log_group(logGroupName=GROUP)

    def _start(self, node: str, rank: int, slow: float) -> str:
        tags = [{"Key": key, "Value": value} for key, value in (("node", node), ("rank", str(rank)), ("job", JOB))]
        answer = self.ec2.run_instances(
            ImageId=IMAGE, InstanceType="dl1.24xlarge", MinCount=1, MaxCount=1, UserData=self._delayed(slow),
            IamInstanceProfile={"Name": "nodes"}, TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
            MetadataOptions={"HttpTokens": "required", "InstanceMetadataTags": "enabled"},
            NetworkInterfaces=[
                {"DeviceIndex": 0, "SubnetId": self.subnet, "Groups": [self.group], "InterfaceType": "efa"}
            ],
        )  # fmt: skip
        return str(answer["Instances"][0]["InstanceId"])

    def _delayed(self, seconds: float) -> str:
        before, steps, after = self.user_data.partition("\nruncmd:\n")
        return f'{before}{steps}- [sleep, "{seconds}"]\n{after}' if seconds else self.user_data

    def get(self, name: str) -> dict[str, Any]:
        try:
            key = f".trainyard/clusters/{JOB}/{name}"
            return dict(json.loads(self.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()))
        except self.s3.exceptions.NoSuchKey:
            return {}

    def command(self, node: str, *lines: str) -> str:
        """Runs a command through Systems Manager, and returns its output."""
        ssm, instance = self.clients["ssm"], self.instances[node]
        sent = ssm.send_command(
            InstanceIds=[instance], DocumentName="AWS-RunShellScript", Parameters={"commands": list(lines)}
        )["Command"]["CommandId"]
        ended = ("Success", "Failed", "Cancelled", "TimedOut")
        row = eventually(
            lambda: ssm.get_command_invocation(CommandId=sent, InstanceId=instance),
            lambda answer: answer["Status"] in ended,
            describe=self.consoles,
        )
        return str(row["StandardOutputContent"] + row["StandardErrorContent"])

    def wake(self, node: str) -> None:
        assert self.command(node, "/opt/trainyard/bin/trainyard-node wake") == "woken\n"

    def consoles(self) -> str:
        """The console output of the machines; for a machine without output, what the cloud says about it."""
        files = [*self.home.rglob("node-0.log"), *self.home.rglob("server.log")]
        return "\n".join(path.read_text(errors="replace")[-6000:] for path in files)

    def ready(self) -> None:
        for node in self.nodes:
            eventually(partial(self._is_ready, node), describe=self.consoles)

    def _is_ready(self, node: str) -> bool:
        return bool(self.get(f"nodes/{node}.json").get("state") == "ready")


def _made_by(earlier: Earlier, told: NodeSettings) -> str:
    """The user data of a release for these settings."""
    written = yaml.safe_load(earlier.user_data)
    (file,) = [row for row in written["write_files"] if row["path"].endswith("/node.json")]
    file["content"] = json.dumps(told.document())
    return f"#cloud-config\n{yaml.safe_dump(written)}"


def archive(files: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as opened:
        for name, text in files.items():
            row = tarfile.TarInfo(name)
            row.size = len(text.encode())
            opened.addfile(row, io.BytesIO(text.encode()))
    return buffer.getvalue()
