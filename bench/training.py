# SPDX-License-Identifier: Apache-2.0
"""Time to the first step of training: nodes started by the launcher, against the framework started by hand.

Both are runs of one job on the local cloud, with one host per node, and with the same addresses, program, arguments and
ports. When started by hand, all addresses are known beforehand, so no rendezvous is needed.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import oci
import psutil
import pytest

from bench.harness.rows import TURNS, Aim, Row, in_turns
from components.oci.client.job_runs import MAIN_VARIABLE
from components.plan.model import NodePlan
from localcloud import admin
from localcloud.environments.find import Environment
from localcloud.hosts.node_setup import GIVEN, METADATA
from localcloud.oci.ocids import new_ocid
from tests.support.cloud_fixture import Clients, local_cloud
from tests.support.cloud_world import TERMINAL, World
from tests.support.field import BUCKET, Field
from tests.support.framework_examples import EXAMPLES, Example
from tests.support.network_world import SERVICES, egress, ingress
from tests.support.samples import plan

# The examples, and their number of nodes: Dask and parameter servers have more roles.
NODES: Mapping[str, int] = {
    "dask": 3, "pytorch": 2, "tensorflow": 2, "tensorflow-ps": 3, "horovod-pytorch": 2, "horovod-tensorflow": 2,
}  # fmt: skip
LIMIT = 1.15
_CIDR = "10.0.1.0/24"
_PROGRESS = "progress.jsonl"
# Started by hand, the program writes to its working directory. The launcher gives it a folder.
_WRITTEN = (f"decompressed_artifact/{_PROGRESS}", f"trainyard-*/{_PROGRESS}")
_LONGEST = 300.0
_LOOK_SECONDS = 0.01
# Long enough that no node counts as lost because the machine is busy.
_PATIENT = {"TRAINYARD_LOST_SECONDS": "600"}


@dataclass(frozen=True)
class Step:
    """Seconds from the start of the first node's process to the first step, and processor seconds of all nodes until
    then."""

    clock: float
    processor: float


@dataclass(frozen=True)
class Start:
    """The environment and the command of one node."""

    environment: Mapping[str, str]
    entrypoint: Sequence[str] = ()


def rows() -> list[Row]:
    """Rows for each framework. BENCH_FRAMEWORKS="pytorch dask" selects some."""
    names = os.environ.get("BENCH_FRAMEWORKS", "").split() or list(NODES)
    made: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="bench-training-") as home, local_cloud(Path(home) / "cloud") as cloud:
        place = Field(World(Clients(cloud)))
        subnet = ""
        for name in names:
            try:
                environment = EXAMPLES[name].environment()
                subnet = subnet or _subnet(place)
            except pytest.skip.Exception as reason:
                click.echo(f"{name}: {reason}", err=True)
                continue
            made += _rows(name, Hosts(place, name, subnet, environment))
    return made


def _rows(name: str, hosts: Hosts) -> list[Row]:
    click.echo(f"{name}: {TURNS + 1} pairs of runs", err=True)
    ours, hand = in_turns(hosts.launched, hosts.by_hand)
    nodes = f"{name}, {NODES[name]} nodes"
    return [
        _row(f"{nodes}: to the first step", [one.clock for one in ours], [one.clock for one in hand],
             Aim("ratio", LIMIT)),
        _row(f"{nodes}: processors until then", [one.processor for one in ours], [one.processor for one in hand], None),
    ]  # fmt: skip


def _row(name: str, ours: Sequence[float], hand: Sequence[float], aim: Aim | None) -> Row:
    ratio = statistics.median(one / other for one, other in zip(ours, hand, strict=True))
    return Row(name, statistics.median(ours), "s", "started by hand", statistics.median(hand), ratio, aim)


def _subnet(place: Field) -> str:
    """A subnet that is open between its nodes: a framework that is started by hand chooses its own ports."""
    ins, outs = [ingress("tcp", _CIDR)], [egress("tcp", _CIDR), egress("tcp", SERVICES, 443)]
    return place.network.subnet(_CIDR, ins, outs)


@dataclass
class Hosts:
    """The runs of one example's job, one after another with the same addresses."""

    place: Field
    name: str
    subnet: str
    environment: Environment
    _job: str = field(init=False)
    _image: str = field(init=False)
    _addresses: Sequence[str] = field(default=(), init=False)
    _count: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._image = f"iad.ocir.io/{self.place.namespace}/frameworks/{self.environment.name}:1"
        admin.push_image(self.place.world.clients.cloud, self._image)
        admin.push_when_repository_exists(self.place.world.clients.cloud, self._image, self.environment.name)
        self._job = self.place.job(self._example.folder, self.subnet, self._image)

    @property
    def _example(self) -> Example:
        return EXAMPLES[self.name]

    @property
    def _nodes(self) -> tuple[NodePlan, ...]:
        job = self._example.job(NODES[self.name])
        return plan(jobs={"train": job}).jobs["train"].runs["base"].nodes

    def launched(self) -> Step:
        """Starts a run as a stack does, by launch documents."""
        self._count += 1
        bucket, run = f"oci://{BUCKET}@{self.place.namespace}", f"/{self.name}-{self._count}"
        starts, main = [], new_ocid("datasciencejobrun", "iad")
        for node in self._nodes:
            document = json.dumps(node.launch).replace("${bucket}", bucket).replace("/base", run)
            variables = {key: str(value) for key, value in node.environment.items() if "${" not in str(value)}
            starts.append(Start({**variables, **_PATIENT, MAIN_VARIABLE: main, "TRAINYARD_LAUNCH": document}))
        return self._first_step(starts)

    def by_hand(self) -> Step:
        """Starts a run by hand, with the addresses of the run before: the subnet assigns them again."""
        roles = [node.role for node in self._nodes]
        return self._first_step(list(_by_hand(self.name, self._example.command, roles, self._addresses)))

    def _first_step(self, starts: Sequence[Start]) -> Step:
        world, models = self.place.world, oci.data_science.models
        groups = [
            models.JobNodeGroupConfigurationDetails(
                name=f"node-{rank}", replicas=1,
                job_configuration_details=models.DefaultJobConfigurationDetails(
                    environment_variables=dict(start.environment)
                ),
                job_environment_configuration_details=models.OcirContainerJobEnvironmentConfigurationDetails(
                    image=self._image, entrypoint=list(start.entrypoint) or None
                ),
            )
            for rank, start in enumerate(starts)
        ]  # fmt: skip
        layout = models.MultiNodeJobNodeConfigurationDetails(
            job_network_configuration=models.JobCustomNetworkConfiguration(subnet_id=self.subnet),
            job_node_group_configuration_details_list=groups,
        )
        run = world.run(self._job, job_node_configuration_override_details=layout)
        folder = Path(world.clients.cloud.home) / "runs" / run.id
        try:
            written, processor = self._written(run, folder)
            self._addresses = [row["IPAddress"] for row in json.loads((folder / GIVEN / METADATA).read_text())]
        finally:
            with suppress(oci.exceptions.ServiceError):  # it has ended already
                world.clients.data_science.cancel_job_run(run.id)
            world.finished(run)
        began = [json.loads(file.read_text())["started"] for file in folder.glob("node-*.result")]
        return Step(written - min(began), processor)

    def _written(self, run: Any, folder: Path) -> tuple[float, float]:
        """When rank 0 wrote its first line, by the file's time, and the nodes' processor seconds until then."""
        deadline, look = time.monotonic() + _LONGEST, 0
        while time.monotonic() < deadline:
            for pattern in _WRITTEN:
                for file in (folder / "node-0").glob(pattern):
                    seen, found = time.time(), file.stat()
                    if found.st_size:
                        return min(seen, found.st_mtime), _computed(folder)
            look += 1
            if look % 100 == 0 and (now := self.place.world.read(run)).lifecycle_state in TERMINAL:
                break
            time.sleep(_LOOK_SECONDS)
        now = self.place.world.read(run)
        last_lines = "\n".join(self.place.world.lines(run)[-30:])
        raise RuntimeError(f"{self.name}: no first step: {now.lifecycle_state} {now.lifecycle_details}\n{last_lines}")


def _computed(folder: Path) -> float:
    """Processor seconds of the nodes' processes, without their supervisors."""
    total = 0.0
    for file in folder.glob("node-*.pid"):
        for process in psutil.Process(json.loads(file.read_text())["pid"]).children(recursive=True):
            with suppress(psutil.Error):
                total += sum(process.cpu_times()[:4])
    return total


def _by_hand(name: str, command: str, roles: Sequence[str], addresses: Sequence[str]) -> Iterator[Start]:
    """The command that a user would type on each host."""
    head, script = addresses[0], f"exec python -u {command}"
    for rank, own in enumerate(addresses):
        variables = {"TRAINYARD_PROGRESS": _PROGRESS, "OCI__WORKER_COUNT": str(len(roles) - 1)}
        words = script
        if name == "dask":
            variables["DASK_SCHEDULER_ADDRESS"] = f"tcp://{head}:8786"
            scheduler = f"python -m distributed.cli.dask_scheduler --host {own} --port 8786"
            worker = f"python -m distributed.cli.dask_worker tcp://{head}:8786 --host {own} --worker-port 8700:8709"
            pages, alone = f"--dashboard-address {own}:8787", "--nworkers 1 --nthreads 1 --no-dashboard --no-nanny"
            words = f"exec {worker} {alone}" if rank else f"{scheduler} {pages} & {script}"
        elif name == "pytorch":
            variables |= {"MASTER_ADDR": head, "MASTER_PORT": "29400", "RANK": str(rank), "WORLD_SIZE": str(len(roles)),
                     "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "GLOO_SOCKET_IFNAME": "eth0"}  # fmt: skip
        elif name.startswith("tensorflow"):
            variables["TF_CONFIG"] = _tf_config(rank, roles, addresses)
        else:
            variables |= {
                "HOROVOD_GLOO_RENDEZVOUS_ADDR": head, "HOROVOD_GLOO_RENDEZVOUS_PORT": "29600",
                "HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo", "HOROVOD_GLOO_IFACE": "eth0",
                "HOROVOD_HOSTNAME": own, "HOROVOD_RANK": str(rank), "HOROVOD_SIZE": str(len(roles)),
                "HOROVOD_LOCAL_RANK": "0", "HOROVOD_LOCAL_SIZE": "1", "HOROVOD_CROSS_RANK": str(rank),
                "HOROVOD_CROSS_SIZE": str(len(roles)),
            }  # fmt: skip
            hosts = ",".join(f"{address}:1" for address in addresses)
            server = f"python -m launcher.servers.horovod_rendezvous {own} 29600 {hosts}"
            words = script if rank else f"{server} & {script}"
        yield Start(variables, ("bash", "-c", words))


def _tf_config(rank: int, roles: Sequence[str], addresses: Sequence[str]) -> str:
    named = [{"main": "chief" if "ps" in roles else "worker"}.get(role, role) for role in roles]
    cluster: dict[str, list[str]] = {}
    for task, address in zip(named, addresses, strict=True):
        cluster.setdefault(task, []).append(f"{address}:12345")
    return json.dumps({"cluster": cluster, "task": {"type": named[rank], "index": named[:rank].count(named[rank])}})
