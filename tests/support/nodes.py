# SPDX-License-Identifier: Apache-2.0
"""Launchers as real processes on loopback addresses, with the plan's launch documents. They meet in a local cloud's
bucket."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import oci

from components.oci.client.job_runs import MAIN_VARIABLE, start_of_job_run
from components.plan.model import NodePlan
from localcloud.admin import issue_resource_principal
from localcloud.oci.ocids import new_ocid
from localcloud.oci.sdk import oci_client_variables
from schemas.model import Job, Retry, Role
from tests.support.cloud_world import World
from tests.support.samples import job, plan
from tests.support.waiting import LONGEST_SECONDS, eventually

ROOT = Path(__file__).parents[2]
BUCKET = "runs"


@dataclass(frozen=True)
class Place:
    """A bucket in a local cloud, and the identity of a node that may use it."""

    world: World
    folder: Path

    @property
    def namespace(self) -> str:
        return str(self.world.clients.storage.get_namespace().data)

    @cached_property
    def environment(self) -> dict[str, str]:
        """The variables that hosts give a node: token and key of its principal are in files."""
        clients, compartment = self.world.clients, self.world.compartment
        details = oci.object_storage.models.CreateBucketDetails(name=BUCKET, compartment_id=compartment)
        clients.storage.create_bucket(self.namespace, details)
        rule = f"all {{resource.type = 'datasciencenotebooksession', resource.compartment.id = '{compartment}'}}"
        group = oci.identity.models.CreateDynamicGroupDetails(
            compartment_id=clients.cloud.tenancy, name="nodes", description="nodes", matching_rule=rule
        )
        clients.identity.create_dynamic_group(group)
        policy = oci.identity.models.CreatePolicyDetails(
            compartment_id=clients.cloud.tenancy, name="nodes", description="nodes",
            statements=["allow dynamic-group nodes to manage objects in compartment training"],
        )  # fmt: skip
        clients.identity.create_policy(policy)
        variables = issue_resource_principal(clients.cloud, self._notebook())
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in ("RPST", "PRIVATE_PEM"):
            file = self.folder / name.lower()
            file.write_text(variables[f"OCI_RESOURCE_PRINCIPAL_{name}"])
            file.chmod(0o600)
            variables[f"OCI_RESOURCE_PRINCIPAL_{name}"] = str(file)
        return {**variables, **oci_client_variables(clients.cloud.endpoint)}

    def _notebook(self) -> str:
        models = oci.data_science.models
        details = models.CreateNotebookSessionDetails(
            compartment_id=self.world.compartment, project_id=self.world.project,
            notebook_session_config_details=models.NotebookSessionConfigDetails(
                shape="VM.Standard2.1", block_storage_size_in_gbs=50
            ),
        )  # fmt: skip
        made = self.world.clients.data_science.create_notebook_session(details).data
        read = self.world.clients.data_science.get_notebook_session
        eventually(lambda: read(made.id).data.lifecycle_state, lambda state: state == "ACTIVE")
        return str(made.id)

    def objects(self, prefix: str = "") -> list[str]:
        found = self.world.clients.storage.list_objects(self.namespace, BUCKET, prefix=prefix, limit=1000)
        return [item.name for item in found.data.objects]

    def content(self, name: str) -> bytes:
        return bytes(self.world.clients.storage.get_object(self.namespace, BUCKET, name).data.content)

    def status(self, run: Nodes, rank: int) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(self.content(f"{run.folder}/status/{rank}.json"))
        return read


@dataclass
class Started:
    """One launcher and its output so far."""

    process: subprocess.Popen[str]
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout:
            for line in self.process.stdout:
                self.said.append(line.rstrip("\n"))

    @property
    def text(self) -> str:
        return "\n".join(self.said)

    def says(self, pattern: str, seconds: float = LONGEST_SECONDS) -> re.Match[str]:
        found = eventually(lambda: re.search(pattern, self.text), bool, seconds)
        assert found is not None
        return found

    def code(self, seconds: float = LONGEST_SECONDS) -> int:
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {seconds} s:\n{self.text}") from None
        self._reader.join(5)
        return code


@dataclass
class Nodes:
    """The nodes of one run: their documents, and the launchers that were started with them."""

    place: Place | None
    home: Path
    documents: tuple[NodePlan, ...]
    name: str
    addresses: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    interpreter: str = sys.executable
    main: str = field(default_factory=lambda: new_ocid("datasciencejobrun", "iad"))
    # Words to put before the launcher's command, of a program that starts it.
    starter: Sequence[str] = ()
    launchers: dict[int, Started] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """The folder of this start of the run."""
        return f"train/{self.name}/1/{start_of_job_run(self.main, {})}"

    def address(self, rank: int) -> str:
        return self.addresses[rank] if self.addresses else f"127.0.0.{rank + 1}"

    def document(self, rank: int) -> dict[str, Any]:
        text = json.dumps({**self.documents[rank].launch, **self.changes})
        bucket = f"oci://{BUCKET}@{self.place.namespace}" if self.place else ""
        found: dict[str, Any] = json.loads(text.replace("${bucket}", bucket).replace("/base", f"/{self.name}"))
        if self.place is None:
            everyone = [self.address(rank) for rank in range(len(self.documents))]
            alone = {"folder": None, "checkpoints": None, "peers": {"from": "list", "addresses": everyone}}
            found |= {**alone, **self.changes}
        return found

    def environment(self, rank: int) -> dict[str, str]:
        home = self.home / f"node-{rank}"
        home.mkdir(parents=True, exist_ok=True)
        given = {name: os.environ[name] for name in ("LANG",) if name in os.environ}
        # As in an image: its `python` comes first in PATH. A machine may have no program of that name.
        given["PATH"] = f"{Path(self.interpreter).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        told = {name: str(value) for name, value in self.documents[rank].environment.items()}
        return {
            **given, **told, "PYTHONPATH": str(ROOT), "HOME": str(home), "TRAINYARD_NODE_ADDRESS": self.address(rank),
            "TRAINYARD_LAUNCH": json.dumps(self.document(rank)),
            **({MAIN_VARIABLE: self.main, **self.place.environment} if self.place else {}), **self.variables,
        }  # fmt: skip

    def start(self, *ranks: int, **variables: str) -> Nodes:
        for rank in ranks or range(len(self.documents)):
            process = subprocess.Popen(
                [*self.starter, self.interpreter, "-m", "launcher"], cwd=self.home,
                env={**self.environment(rank), **variables},
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            )  # fmt: skip
            self.launchers[rank] = Started(process)
        return self

    def codes(self, seconds: float = LONGEST_SECONDS) -> list[int]:
        return [self.launchers[rank].code(seconds) for rank in sorted(self.launchers)]

    def script(self, text: str, name: str = "train.py") -> None:
        (self.home / name).write_text(text)

    def end(self) -> None:
        for started in self.launchers.values():
            if started.process.poll() is None:
                started.process.send_signal(signal.SIGKILL)
            started.code()

    def shown(self) -> str:
        return "\n\n".join(f"--- {rank}\n{started.text}" for rank, started in sorted(self.launchers.items()))


def planned(framework: str, roles: Mapping[str, int | Role], **changes: Any) -> Job:
    """A job as it would be in a stack file."""
    given = {name: role if isinstance(role, Role) else Role(role) for name, role in roles.items()}
    return replace(job(framework, {}), roles=given, **changes)


@contextmanager
def nodes(
    place: Place | None, home: Path, spec: Job, name: str, documents: tuple[NodePlan, ...] = (), **more: Any
) -> Iterator[Nodes]:
    """The nodes of a job's run. Those that still run in the end are killed."""
    found = Nodes(place, home, documents or plan(jobs={"train": spec}).jobs["train"].runs["base"].nodes, name, **more)
    home.mkdir(parents=True, exist_ok=True)
    try:
        yield found
    except BaseException:
        print(found.shown())
        raise
    finally:
        found.end()


def block(size: int) -> tuple[int, int]:
    """A range of free ports that the kernel gives to no other socket."""
    # A random order, so that tests that run at the same time choose other ports.
    firsts = list(range(20011, 29000, 61))
    random.shuffle(firsts)
    for first in firsts:
        try:
            for port in range(first, first + size):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first, first + size - 1
    raise AssertionError("no free block of ports")


def waited(condition: Callable[[], bool], seconds: float = LONGEST_SECONDS) -> None:
    """Waits until the condition is true."""
    eventually(condition, bool, seconds)


def gang(retries: int = 0, nodes: int = 3) -> Job:
    """A PyTorch job whose nodes are retried together, up to this number of times."""
    roles = {"main": Role(1, retry=Retry(retries)), "worker": Role(nodes - 1, retry=Retry(retries))}
    return planned("pytorch", roles, ports={"data": "all"})
