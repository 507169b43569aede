# SPDX-License-Identifier: Apache-2.0
"""Machines of a cluster as they are: their user data is carried out, their program serves, training runs in containers.

They are instances of the local AWS: root of user namespaces of their own, with a network of their own.
"""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from components.aws_dl1.node_setup import NodeSettings, user_data
from tests.support.aws_clients import AwsClients
from tests.support.cloud_fixture import local_cloud
from tests.support.documents import document
from tests.support.machine_cluster import GROUP, JOB, KEY_SECRET, LAUNCHER, launcher_archive

BUCKET, IMAGE, ZONE = "vision-dev-runs", "ami-0d11a1b2c3d4e5f60", "us-east-1a"
CODE = ".trainyard/code/resnet-0123456789abcdef.tar.gz"
NODES = ("main-0", "worker-0")
TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
MAY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": ["s3:*", "secretsmanager:*", "logs:*", "ecr:*"], "Resource": "*"}],
}
# Each rank reaches each node by name and by address, without a question, and says what the container is told.
SCRIPT = """
import json, os, pathlib, stat, subprocess, sys, time
ssh = pathlib.Path.home() / ".ssh"
print("modes", {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in [ssh, *sorted(ssh.iterdir())]})
names = ("FI_EFA_FORK_SAFE", "HCCL_OVER_OFI", "FI_PROVIDER", "HCCL_SOCKET_IFNAME", "HABANA_VISIBLE_DEVICES")
print("told", {name: os.environ.get(name) for name in names})
print("secret", len(os.environ["WANDB_API_KEY"]), repr(os.environ["CERTIFICATE"]))
for peer in sys.argv[1:]:
    words = ["ssh", "-o", "BatchMode=yes", peer, "cat /etc/trainyard/node.json"]
    done = subprocess.run(words, capture_output=True, text=True)
    print("ssh", peer, done.returncode, json.loads(done.stdout or "{}").get("job"), done.stderr.strip())
config = (ssh / "config").read_text()
print("ports", sorted({line.split()[1] for line in config.splitlines() if line.strip().startswith("Port")}))
# Nobody leaves before all others have asked.
start, rank = os.environ["TRAINYARD_START"], os.environ["RANK"]
for peer in ("main-0", "worker-0"):
    subprocess.run(["ssh", peer, f"touch /tmp/{start}-{rank}"], check=True)
while len(list(pathlib.Path("/tmp").glob(f"{start}-*"))) < 2:
    time.sleep(0.02)
pathlib.Path("written").write_text("the code's folder may be written")
"""


def until(what: str, found: Callable[[], Any], detail: Callable[[], str], seconds: float = 60) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = found()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError(f"{what} did not come in {seconds:.0f} s\n{detail()}")


class World:
    """Two instances, made as the deployment makes them."""

    def __init__(self, clients: AwsClients, home: Path, **settings: Any) -> None:
        self.clients, self.home = clients, home
        self.s3, self.ec2 = clients["s3"], clients["ec2"]
        self._prepare()
        told = NodeSettings(
            region="us-east-1", bucket=BUCKET, job=JOB, nodes=NODES, launcher=LAUNCHER, code=CODE, log_group=GROUP,
            ssh_secret=KEY_SECRET, image="registry/train:1", release="1.15.1", efa_interfaces=1,
            stop_when_idle_minutes=30, **settings,
        )  # fmt: skip
        self.user_data = user_data(told)
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
        self.instances = {node: self._start(node, rank) for rank, node in enumerate(NODES)}

    def _prepare(self) -> None:
        iam, secrets = self.clients["iam"], self.clients["secretsmanager"]
        iam.create_role(RoleName="nodes", AssumeRolePolicyDocument=json.dumps(TRUST))
        iam.put_role_policy(RoleName="nodes", PolicyName="nodes", PolicyDocument=json.dumps(MAY))
        iam.create_instance_profile(InstanceProfileName="nodes")
        iam.add_role_to_instance_profile(InstanceProfileName="nodes", RoleName="nodes")
        self.s3.create_bucket(Bucket=BUCKET)
        self.s3.put_object(Bucket=BUCKET, Key=LAUNCHER, Body=launcher_archive())
        self.s3.put_object(Bucket=BUCKET, Key=CODE, Body=archive({"probe.py": SCRIPT}))
        key = self.home / "id_rsa"
        subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-b", "4096", "-N", "", "-f", str(key)], check=True)
        secrets.create_secret(Name=KEY_SECRET, SecretString=key.read_text())
        hidden = {"WANDB_API_KEY": "hush-hush-hush", "CERTIFICATE": "one\ntwo"}
        secrets.create_secret(Name="run-1", SecretString=json.dumps(hidden))
        self.clients["logs"].create_log_group(logGroupName=GROUP)

    def _start(self, node: str, rank: int) -> str:
        tags = [{"Key": key, "Value": value} for key, value in (("node", node), ("rank", str(rank)), ("job", JOB))]
        answer = self.ec2.run_instances(
            ImageId=IMAGE, InstanceType="dl1.24xlarge", MinCount=1, MaxCount=1, UserData=self.user_data,
            IamInstanceProfile={"Name": "nodes"}, TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
            MetadataOptions={"HttpTokens": "required", "InstanceMetadataTags": "enabled"},
            NetworkInterfaces=[
                {"DeviceIndex": 0, "SubnetId": self.subnet, "Groups": [self.group], "InterfaceType": "efa"}
            ],
        )  # fmt: skip
        return str(answer["Instances"][0]["InstanceId"])

    def get(self, name: str) -> dict[str, Any]:
        try:
            key = f".trainyard/clusters/{JOB}/{name}"
            return dict(json.loads(self.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()))
        except self.s3.exceptions.NoSuchKey:
            return {}

    def consoles(self) -> str:
        texts = [path.read_text(errors="replace")[-6000:] for path in self.home.rglob("node-0.log")]
        return "\n".join(texts)

    def ready(self) -> None:
        for node in NODES:
            until(f"{node} ready", partial(self._is_ready, node), self.consoles)

    def _is_ready(self, node: str) -> bool:
        return bool(self.get(f"nodes/{node}.json").get("state") == "ready")

    def _end(self, number: int, node: str) -> dict[str, Any] | None:
        state = self.get(f"starts/{number:08}/{node}.json")
        return state if state.get("state") not in (None, "IN_PROGRESS") else None

    def command(self, node: str, *lines: str) -> str:
        """A command of Systems Manager, and what it printed."""
        ssm, instance = self.clients["ssm"], self.instances[node]
        sent = ssm.send_command(
            InstanceIds=[instance], DocumentName="AWS-RunShellScript", Parameters={"commands": list(lines)}
        )["Command"]["CommandId"]
        ended = ("Success", "Failed", "Cancelled", "TimedOut")
        row = until(
            "the command",
            lambda: [
                row
                for row in [ssm.get_command_invocation(CommandId=sent, InstanceId=instance)]
                if row["Status"] in ended
            ],
            self.consoles,
        )[0]
        return str(row["StandardOutputContent"] + row["StandardErrorContent"])

    def run(self, number: int, *words: str) -> dict[str, list[str]]:
        """One start of the code's script, and what it printed on each node."""
        nodes = [
            {"name": node, "role": role_of(node), "rank": rank, "arguments": [],
             "environment": {"TRAINYARD_LAUNCH": json.dumps(launch(rank, node, words))}}
            for rank, node in enumerate(NODES)
        ]  # fmt: skip
        ticket = {"version": 1, "number": number, "run": "base", "image": "registry/train:1", "secret": "run-1",
                  "nodes": nodes}  # fmt: skip
        key = f".trainyard/clusters/{JOB}/queue/{number:08}.json"
        self.s3.put_object(Bucket=BUCKET, Key=key, Body=json.dumps(ticket).encode(), IfNoneMatch="*")
        for node in NODES:
            assert self.command(node, "/opt/trainyard/bin/trainyard-node wake") == "woken\n"
        lines = {}
        for node in NODES:
            state = until(f"the end on {node}", partial(self._end, number, node), self.consoles)
            stream = f"base/s{number:08}/{node}"
            events = self.clients["logs"].get_log_events(logGroupName=GROUP, logStreamName=stream, startFromHead=True)
            lines[node] = [event["message"] for event in events["events"]]
            assert state["state"] == "SUCCEEDED", f"{state}\n" + "\n".join(lines[node]) + self.consoles()
        return lines


def role_of(node: str) -> str:
    return node.partition("-")[0]


def launch(rank: int, node: str, words: tuple[str, ...]) -> dict[str, Any]:
    """The launch document of a node that runs the code's script once."""
    folder = f"s3://{BUCKET}/{JOB}/base"
    row = {"replicas": 1, "service": False, "minFailed": 1, "minSucceeded": None}
    return document(
        rank, roles=[{"name": role_of(name), **row} for name in NODES], role=role_of(node), node=node, rank=rank,
        folder=f"{folder}/1", checkpoints=f"{folder}/checkpoints", command=["probe.py", *words], processes=1,
    )  # fmt: skip


def archive(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as opened:
        for name, text in files.items():
            row = tarfile.TarInfo(name)
            row.size = len(text.encode())
            opened.addfile(row, io.BytesIO(text.encode()))
    return buffer.getvalue()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    home = tmp_path_factory.mktemp("machines")
    with local_cloud(home / "cloud") as cloud:
        made = World(AwsClients(cloud), home)
        made.ready()
        yield made


def test_machines_come_up_by_their_user_data(world: World) -> None:
    report = world.get("nodes/worker-0.json")
    assert (report["instance"], report["state"]) == (world.instances["worker-0"], "ready")
    modes = world.command("main-0", "stat -c '%a %n' /root/.ssh /root/.ssh/* /etc/trainyard/node.json")
    files = ("authorized_keys", "config", "id_rsa", "id_rsa.pub")
    wanted = ["700 /root/.ssh", *(f"600 /root/.ssh/{name}" for name in files), "644 /etc/trainyard/node.json"]
    assert modes.splitlines() == wanted
    config = world.command("main-0", "cat /root/.ssh/config")
    assert "    StrictHostKeyChecking no" in config
    assert "    ForwardAgent yes" in config


@pytest.fixture(scope="module")
def first(world: World) -> dict[str, list[str]]:
    """What the nodes print in a start that reaches each of them by name and by address."""
    return world.run(1, *NODES, *(world.get(f"nodes/{node}.json")["address"] for node in NODES))


def test_containers_reach_each_other_by_ssh_on_3022_without_a_question(
    world: World, first: dict[str, list[str]]
) -> None:
    addresses = [world.get(f"nodes/{node}.json")["address"] for node in NODES]
    for node in NODES:
        for peer in (*NODES, *addresses):
            assert any(f"ssh {peer} 0 {JOB}" in line for line in first[node]), "\n".join(first[node])
        assert any("ports ['3022']" in line for line in first[node])


def test_further_containers_on_a_host_get_4022_and_everybody_knows(world: World) -> None:
    """Somebody's own container has 3022 on one machine."""
    listener = "import socket, time; s = socket.socket(); s.bind(('', 3022)); s.listen(); print(1); time.sleep(600)"
    words = "docker run --detach --name=other --entrypoint=python3 registry/other:1"
    world.command("worker-0", f'{words} -c "{listener}"; until docker logs other | grep -qx 1; do sleep 0.05; done')
    lines = world.run(2, *NODES)
    assert any("ports ['3022', '4022']" in line for line in lines["main-0"]), "\n".join(lines["main-0"])
    for node in NODES:
        for peer in NODES:
            assert any(f"ssh {peer} 0 {JOB}" in line for line in lines[node]), "\n".join(lines[node])
    assert world.get("starts/00000002/worker-0.json")["sshPort"] == 4022


def test_the_container_is_told_what_the_documents_ask_for(first: dict[str, list[str]]) -> None:
    lines = first["main-0"]
    told = next(line for line in lines if "told {" in line)
    assert "'HCCL_OVER_OFI': '1', 'FI_PROVIDER': 'efa'" in told
    assert "'HABANA_VISIBLE_DEVICES': 'all'" in told
    assert "'HCCL_SOCKET_IFNAME': None" not in told
    # No package manager of this image knows rdma-core, so it is taken for an old one.
    assert "'FI_EFA_FORK_SAFE': '1'" in told
    assert any("secret 14 'one\\ntwo'" in line for line in lines)
    assert any("'id_rsa': '0o600'" in line and "'.ssh': '0o700'" in line for line in lines)
