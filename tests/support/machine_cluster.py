# SPDX-License-Identifier: Apache-2.0
"""A cluster whose machines are processes. Each has its own root folder; all use the same moto server."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from launcher.aws_dl1.machine.tickets import ENDS
from tests.support.aws_machines import REGION, Instance, client, metadata, role
from tests.support.docker_stand_in import STATE, install
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]
JOB, GROUP, KEY_SECRET = "resnet", "vision-dev", "vision-dev-resnet-ssh"
LAUNCHER = ".trainyard/launcher/0123456789abcdef.tar.gz"


@dataclass
class MachineProcess:
    """One machine: its disk, and its program."""

    root: Path
    instance: Instance
    environment: dict[str, str]
    process: subprocess.Popen[bytes] | None = None

    @property
    def state(self) -> Path:
        return self.root / "docker"

    def serve(self) -> None:
        """Starts the program, as the machine's systemd unit does."""
        with (self.root / "console").open("ab") as console:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "launcher.aws_dl1.machine", "serve"],
                cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL, stdout=console, stderr=console,
            )  # fmt: skip

    def boot(self, user_data: str, python: Path | None) -> None:
        """Runs the steps of the user data. The machine's `python3` is this interpreter."""
        for file in yaml.safe_load(user_data)["write_files"]:
            path = self.root / file["path"][1:]
            path.parent.mkdir(parents=True, exist_ok=True)
            # On a real machine, this folder is the root of the disk.
            path.write_text(file["content"].replace(" /opt/trainyard", f" {self.root}/opt/trainyard"))
            path.chmod(int(file["permissions"], 8))
        programs = self.root / "programs"
        programs.mkdir(exist_ok=True)
        named = {"python3": str(python)} if python else {}
        for name in ("sh", "ssh-keygen", "env", "sleep"):
            named[name] = shutil.which(name) or name
        for name, target in named.items():
            (programs / name).symlink_to(target)
        environment = {**self.environment, "PATH": f"{self.root / 'bin'}:{programs}"}
        with (self.root / "console").open("ab") as console:
            self.process = subprocess.Popen(
                [shutil.which("sh") or "sh", str(self.root / "opt/trainyard/bin/trainyard-node"), "serve"],
                cwd=self.root, env=environment, stdin=subprocess.DEVNULL, stdout=console, stderr=console,
            )  # fmt: skip

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs the program with other arguments."""
        return subprocess.run(
            [sys.executable, "-m", "launcher.aws_dl1.machine", *words],
            cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def kill(self, number: int = signal.SIGKILL) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(20)

    def reboot(self) -> None:
        """Ends all processes, and empties /run."""
        self.kill()
        self.end_containers()
        for file in (self.root / "run/trainyard-node").iterdir():
            file.unlink()
        self.serve()

    def end_containers(self) -> None:
        for file in self.state.glob("*/state"):
            state = json.loads(file.read_text())
            if state["Status"] == "running":
                os.kill(state["Pid"], signal.SIGKILL)
                eventually(partial(_has_exited, file))

    def console(self) -> str:
        return (self.root / "console").read_text(errors="replace")

    def calls(self, *begin: str) -> list[list[str]]:
        """The programs that were called, with their arguments."""
        file = self.state / "calls"
        rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [row for row in rows if row[: len(begin)] == list(begin)]


def _has_exited(state: Path) -> bool:
    return bool(json.loads(state.read_text())["Status"] == "exited")


@dataclass
class ClusterWorld:
    """A cluster, and what tests do with it."""

    endpoint: str
    bucket: str
    machines: dict[str, MachineProcess] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.s3, self.logs = client(self.endpoint, "s3"), client(self.endpoint, "logs")

    def key(self, name: str) -> str:
        return f".trainyard/clusters/{JOB}/{name}"

    def put(self, name: str, content: Any) -> None:
        self.s3.put_object(Bucket=self.bucket, Key=self.key(name), Body=json.dumps(content).encode())

    def get(self, name: str) -> dict[str, Any] | None:
        try:
            return dict(json.loads(self.s3.get_object(Bucket=self.bucket, Key=self.key(name))["Body"].read()))
        except self.s3.exceptions.NoSuchKey:
            return None

    def ticket(self, number: int, command: str = "true", nodes: tuple[str, ...] = (), **more: Any) -> None:
        """Queues a ticket and wakes the machines, as the provider does."""
        names = nodes or tuple(self.machines)
        content = {
            "version": 1, "number": number, "start": f"s{number:08}", "run": "base", "image": "registry/train:1",
            "nodes": [
                {"name": name, "role": "main", "rank": rank, "environment": {"COMMAND": command}, "arguments": []}
                for rank, name in enumerate(names)
            ],
            **more,
        }  # fmt: skip
        body = json.dumps(content).encode()
        self.s3.put_object(Bucket=self.bucket, Key=self.key(f"queue/{number:08}.json"), Body=body, IfNoneMatch="*")
        self.wake()

    def cancel(self, number: int) -> None:
        self.put(f"starts/{number:08}/cancel", {})
        self.wake()

    def wake(self) -> None:
        for machine in self.machines.values():
            # A machine that is not up yet looks into the queue when it comes up.
            if not (machine.root / "run/trainyard-node/wake").exists():
                continue
            with (machine.root / "run/trainyard-node/wake").open("r+b", buffering=0) as pipe:
                pipe.write(b"\n")

    def state(self, number: int, node: str) -> dict[str, Any]:
        return self.get(f"starts/{number:08}/{node}.json") or {}

    def ended(self, number: int, *nodes: str) -> dict[str, dict[str, Any]]:
        """Waits until all nodes of a start have ended, and returns how."""

        return eventually(
            lambda: {node: self.state(number, node) for node in nodes or tuple(self.machines)},
            lambda states: all(state.get("state") in ENDS for state in states.values()),
            describe=self.consoles,
        )

    def consoles(self) -> str:
        return "\n".join(f"{name}: {machine.console()}" for name, machine in self.machines.items())

    def report(self, node: str, state: str) -> dict[str, Any]:
        """Waits until a node's report has this state, and returns it."""

        return eventually(
            lambda: self.get(f"nodes/{node}.json") or {},
            lambda report: report.get("state") == state,
            describe=self.machines[node].console,
        )

    def lines(self, number: int, node: str) -> list[str]:
        """The log lines of a node's start."""
        try:
            answer = self.logs.get_log_events(
                logGroupName=GROUP, logStreamName=f"{JOB}/base/s{number:08}/{node}", startFromHead=True, limit=10000
            )
        except self.logs.exceptions.ResourceNotFoundException:
            return []
        return [event["message"] for event in answer["events"]]


def launcher_archive(folder: Path = ROOT / "launcher") -> bytes:
    """An archive of the folder `launcher/`, as the deployment makes it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        archive.add(folder, "launcher", filter=lambda row: None if "__pycache__" in row.name else row)
    return buffer.getvalue()


@contextmanager
def cluster(
    endpoint: str, bucket: str, folder: Path, nodes: tuple[str, ...], key: str, serve: bool = True, **settings: Any
) -> Iterator[ClusterWorld]:
    """A cluster whose machines have started, unless the test starts them itself. All processes end with the block."""
    world = ClusterWorld(endpoint, bucket)
    world.s3.put_object(Bucket=bucket, Key=LAUNCHER, Body=launcher_archive())
    secrets = client(endpoint, "secretsmanager")
    with suppress(secrets.exceptions.ResourceExistsException):
        secrets.create_secret(Name=KEY_SECRET, SecretString=key)
    with suppress(world.logs.exceptions.ResourceAlreadyExistsException):
        world.logs.create_log_group(logGroupName=GROUP)
    content = {
        "region": REGION, "bucket": bucket, "job": JOB, "launcher": LAUNCHER, "code": None,
        "logGroup": GROUP, "sshSecret": KEY_SECRET, "sshPort": 3022, "image": "registry/train:1", "release": "1.15.1",
        "hostNic": "libfabric", "efaInterfaces": 4, "stopWhenIdleMinutes": 0, **settings,
    }  # fmt: skip
    with ExitStack() as stack:
        for rank, node in enumerate(nodes):
            world.machines[node] = stack.enter_context(_machine(endpoint, folder, node, rank, content))
        for machine in world.machines.values() if serve else ():
            machine.serve()
        yield world


@contextmanager
def _machine(endpoint: str, folder: Path, node: str, rank: int, settings: dict[str, Any]) -> Iterator[MachineProcess]:
    data = "/latest/meta-data"
    instance = Instance(
        {
            **role("AKIAROLE", "2099-01-01T00:00:00Z"),
            f"{data}/instance-id": f"i-{rank}",
            f"{data}/local-ipv4": f"127.0.0.{rank + 1}",
            f"{data}/tags/instance/node": node,
            f"{data}/tags/instance/rank": str(rank),
        }
    )
    root = folder / node
    (root / "etc/trainyard").mkdir(parents=True)
    (root / "docker").mkdir()
    (root / "etc/trainyard/node.json").write_text(json.dumps(settings))
    with metadata(instance) as address:
        environment = {
            "AWS_ENDPOINT_URL": endpoint, "AWS_EC2_METADATA_SERVICE_ENDPOINT": address,
            "TRAINYARD_MACHINE_ROOT": str(root), STATE: str(root / "docker"), "HOME": str(root),
            "PATH": f"{install(root)}:{os.environ['PATH']}",
        }  # fmt: skip
        machine = MachineProcess(root, instance, environment)
        try:
            yield machine
        finally:
            if machine.process is not None and machine.process.poll() is None:
                machine.kill()
            machine.end_containers()
