# SPDX-License-Identifier: Apache-2.0
"""Machines of a cluster run their user data and their program, and training runs in containers.

They are instances of the local AWS: root of user namespaces of their own, with a network of their own.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from components.platform.status import parse_status
from launcher.aws_dl1.fabric import version_numbers
from launcher.aws_dl1.machine.tickets import ENDS
from tests.support.aws_clients import AwsClients
from tests.support.cloud_fixture import local_cloud
from tests.support.documents import document
from tests.support.local_machines import BUCKET, LocalMachines
from tests.support.machine_cluster import GROUP, JOB
from tests.support.waiting import eventually

NODES = ("main-0", "worker-0")
# Each rank connects to each node by name and by address, without a prompt, and prints the container's variables.
SCRIPT = """
import json, os, pathlib, stat, subprocess, sys, time
ssh = pathlib.Path.home() / ".ssh"
print("modes", {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in [ssh, *sorted(ssh.iterdir())]})
names = ("FI_EFA_FORK_SAFE", "HCCL_OVER_OFI", "FI_PROVIDER", "FI_EFA_USE_DEVICE_RDMA", "RDMAV_FORK_SAFE",
         "HCCL_SOCKET_IFNAME", "HABANA_VISIBLE_DEVICES")
print("told", {name: os.environ.get(name) for name in names})
print("secret", len(os.environ["WANDB_API_KEY"]), repr(os.environ["CERTIFICATE"]))
for peer in sys.argv[1:]:
    words = ["ssh", "-o", "BatchMode=yes", peer, "cat /etc/trainyard/node.json"]
    done = subprocess.run(words, capture_output=True, text=True)
    print("ssh", peer, done.returncode, json.loads(done.stdout or "{}").get("job"), done.stderr.strip())
config = (ssh / "config").read_text()
print("ports", sorted({line.split()[1] for line in config.splitlines() if line.strip().startswith("Port")}))
# No node ends before all others have connected.
start, rank = os.environ["TRAINYARD_START"], os.environ["RANK"]
for peer in ("main-0", "worker-0"):
    subprocess.run(["ssh", peer, f"touch /tmp/{start}-{rank}"], check=True)
while len(list(pathlib.Path("/tmp").glob(f"{start}-*"))) < 2:
    time.sleep(0.02)
pathlib.Path("written").write_text("the code's folder may be written")
"""


class World(LocalMachines):
    """Two machines, with a script of the test."""

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
            self.wake(node)
        lines = {}
        for node in NODES:
            state = eventually(
                partial(self.get, f"starts/{number:08}/{node}.json"),
                lambda report: report.get("state") in ENDS,
                describe=self.consoles,
            )
            stream = f"{JOB}/base/s{number:08}/{node}"
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


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    home = tmp_path_factory.mktemp("machines")
    with local_cloud(home / "cloud") as cloud:
        made = World(AwsClients(cloud), home, NODES, {"probe.py": SCRIPT})
        made.ready()
        yield made


def test_machines_are_set_up_by_their_user_data(world: World) -> None:
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


def test_containers_connect_by_ssh_on_3022_without_a_prompt(world: World, first: dict[str, list[str]]) -> None:
    addresses = [world.get(f"nodes/{node}.json")["address"] for node in NODES]
    for node in NODES:
        for peer in (*NODES, *addresses):
            assert any(f"ssh {peer} 0 {JOB}" in line for line in first[node]), "\n".join(first[node])
        assert any("ports ['3022']" in line for line in first[node])


def test_a_second_container_on_a_host_gets_4022_and_all_nodes_know_it(world: World) -> None:
    """On one machine, another container of a user already has port 3022."""
    # The previous start's container uses the port until its machine is ready again.
    world.ready()
    listener = "import socket, time; s = socket.create_server(('', 3022)); print(1, flush=True); time.sleep(600)"
    words = "docker run --detach --name=other --entrypoint=python3 registry/other:1"
    world.command("worker-0", f'{words} -c "{listener}"; until docker logs other | grep -qx 1; do sleep 0.05; done')
    lines = world.run(2, *NODES)
    assert any("ports ['3022', '4022']" in line for line in lines["main-0"]), "\n".join(lines["main-0"])
    for node in NODES:
        for peer in NODES:
            assert any(f"ssh {peer} 0 {JOB}" in line for line in lines[node]), "\n".join(lines[node])
    assert world.get("starts/00000002/worker-0.json")["sshPort"] == 4022


def test_the_container_has_the_settings_of_the_documents(world: World, first: dict[str, list[str]]) -> None:
    lines = first["main-0"]
    told = next(line for line in lines if "told {" in line)
    # The simulated libfabric is new enough; the kernel is this machine's.
    direct = version_numbers(platform.release()) >= (5, 12)
    wanted = (None, "efa", "1", "1") if direct else ("1", "efa", None, None)
    assert (
        "'HCCL_OVER_OFI': {!r}, 'FI_PROVIDER': {!r}, 'FI_EFA_USE_DEVICE_RDMA': {!r}, 'RDMAV_FORK_SAFE': {!r}".format(
            *wanted
        )
        in told
    )
    way = (
        "Gaudi Direct over EFA (kernel" if direct else "libfabric over the host's memory: Gaudi Direct is not possible"
    )
    assert any(f"between machines: {way}" in line for line in lines)
    key = f"{JOB}/base/1/s00000001/status/0.json"
    status = parse_status(world.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()) or {}
    assert status["transport"].startswith(way)
    assert "'HABANA_VISIBLE_DEVICES': 'all'" in told
    assert "'HCCL_SOCKET_IFNAME': None" not in told
    # The package manager in this image does not have rdma-core, so the version counts as old.
    assert "'FI_EFA_FORK_SAFE': '1'" in told
    assert any("secret 14 'one\\ntwo'" in line for line in lines)
    assert any("'id_rsa': '0o600'" in line and "'.ssh': '0o700'" in line for line in lines)
