# SPDX-License-Identifier: Apache-2.0
"""How a run ends, and how often its script runs, by its retry and completion policies: the same on OCI and on OpenPAI.

One stack file for each row, with the platform changed. On OCI launchers try again, with OCI's launch documents and in a
bucket of the local cloud. On OpenPAI the controller of the local cluster does, and each try is a task of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.openpai.plan import openpai_plan
from components.openpai.run_inputs import openpai_run_inputs, read_files
from components.plan.build import build_plan
from components.plan.model import Plan
from localcloud.control import Cloud
from schemas.load import load_file
from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import World
from tests.support.nodes import Nodes, Place, block, nodes
from tests.support.openpai_world import OpenPaiWorld
from tests.support.samples import job

# Each try exits with the next code of its rank; after the list ends, with the last code. `kill`: ends by a signal.
# `wait`: never ends. `until`: succeeds after another rank has restarted.
_SCRIPT = """
import os, pathlib, signal, socket, sys, time
rank = int(os.environ["RANK"])
kept = pathlib.Path(os.environ["TRAINYARD_CHECKPOINTS"], f"tries-{rank}")
before = int(kept.read_text()) if kept.exists() else 0
kept.write_text(str(before + 1))
stored = pathlib.Path("/mnt/shared/vision/dev/train", os.environ["ROW"], "checkpoints", kept.name)
def wait_until_stored():
    # A file that a killed script has just changed may be half a file, so it is not kept.
    while pathlib.Path("/mnt/shared").is_dir() and not (stored.exists() and stored.read_text() == kept.read_text()):
        time.sleep(0.05)
every = os.environ["CODES"].split("/")
# The cluster kills whoever still waits when another rank fails, without a warning.
if every[rank] == "wait":
    wait_until_stored()
place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
# No rank fails before all others have begun.
if before == 0 and rank == 0 and len(every) > 1:
    with socket.create_server(place) as server:
        for met in [server.accept()[0] for _ in every[1:]]:
            met.close()
        if every[0] == "until":
            server.accept()[0].close()
while rank > 0 and (before == 0 or every[0] == "until"):
    try:
        socket.create_connection(place).recv(1)
        break
    except OSError:
        time.sleep(0.02)
codes = every[rank].split(",")
code = codes[min(before, len(codes) - 1)]
if code == "wait":
    signal.pause()
if code == "kill":
    wait_until_stored()
    os.kill(os.getpid(), signal.SIGKILL)
sys.exit(0 if code == "until" else int(code))
"""
# Nodes that can go on without one another, and only run the command.
_FARM = {
    "name": "farm", "summary": "nodes on their own", "rank": "main is rank 0, workers follow",
    "roles": {
        "main": {"minimum": 1, "maximum": 1, "mode": "MAIN", "why": "the first", "runs_command": True},
        "worker": {"minimum": 0, "mode": "WORKER", "why": "the others", "runs_command": True},
    },
    "ports": [
        {"label": "meeting", "listens": ["main"], "reached_from": ["worker"], "default": 29400, "why": "all meet there",
         "evidence": "measured"},
    ],
    "environment": {"RANK": "{rank}", "MASTER_ADDR": "{address.main}", "MASTER_PORT": "{port.meeting}"},
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """`codes` by rank; `tries`: how often each rank's script runs."""

    codes: str
    ends: str
    tries: tuple[int, ...]
    retry: int = 0
    framework: str = "pytorch"
    worker: Mapping[str, Any] | None = None

    @property
    def workers(self) -> int:
        return self.codes.count("/")


_SUCCEEDS, _FAILS = "SUCCEEDED", "FAILED"
ROWS = {
    "once": Row("3,0", _SUCCEEDS, (2,), retry=1),
    "always": Row("3", _FAILS, (3,), retry=2),
    "no-retry": Row("3,0", _FAILS, (1,)),
    "endless": Row("3,3,3,0", _SUCCEEDS, (4,), retry=-1),
    "transient": Row("75,75,0", _SUCCEEDS, (3,)),
    "permanent": Row("2,0", _FAILS, (1,), retry=3),
    "absent": Row("127,0", _FAILS, (1,), retry=-1),
    "killed": Row("kill,0", _FAILS, (1,)),
    "killed-once": Row("kill,0", _SUCCEEDS, (2,), retry=1),
    "both": Row("3,75,3,3,0", _FAILS, (4,), retry=2),
    "gang": Row("wait,0/3,0", _SUCCEEDS, (2, 2), retry=1),
    "one-fails": Row("wait/3/0", _FAILS, (1, 1, 1), framework="farm"),
    "one-may-fail": Row("0/3/0", _SUCCEEDS, (1, 1, 1), framework="farm", worker={"minFailed": 2}),
    "all-may-fail": Row("0/3/3", _SUCCEEDS, (1, 1, 1), framework="farm", worker={"minFailed": -1}),
    "one-is-enough": Row("wait/0/wait", _SUCCEEDS, (1, 1, 1), framework="farm", worker={"minSucceeded": 1}),
    "alone-again": Row("until/3,0/0", _SUCCEEDS, (1, 2, 1), retry=1, framework="farm"),
}
_OCI = {
    "oci:region": "us-ashburn-1", "trainyard:compartment": "ocid1.compartment.oc1..aaaaaaaavision",
    "trainyard:tenancy": "ocid1.tenancy.oc1..aaaaaaaacompany",
    "trainyard:access": {"users": {"group": "vision-scientists"}}, "trainyard:network": {"cidr": "10.40.0.0/16"},
}  # fmt: skip


def _plan(folder: Path, name: str, row: Row, config: Mapping[str, Any], **more: Any) -> Plan:
    role: dict[str, Any] = {"retry": {"count": row.retry}}
    roles: dict[str, Any] = {"main": {"replicas": 1, **role}}
    if row.workers:
        completion = {"completion": dict(row.worker)} if row.worker else {}
        roles["worker"] = {"replicas": row.workers, **role, **completion}
    train = {
        "framework": row.framework, "image": "example.com/plain:1", "roles": roles, **more,
        "env": {"ROW": name, "CODES": row.codes, "TRAINYARD_LINGER_SECONDS": "0.5"}, "code": "./code",
        "command": "python train.py", "runs": {name: {}},
    }  # fmt: skip
    written = {
        **config, "trainyard:team": "vision", "trainyard:environment": "dev", "trainyard:jobs": {"train": train},
        "trainyard:frameworks": {"farm": "./farm.toml"},
    }  # fmt: skip
    file = folder / f"Pulumi.{name}.yaml"
    file.write_text(yaml.safe_dump({"config": written}))
    loaded = load_file(file)
    assert loaded.stack is not None, loaded.findings
    return build_plan(loaded.stack, {"farm": _FARM})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("outcomes")
    (made / "code").mkdir()
    (made / "code" / "train.py").write_text(_SCRIPT)
    return made


@pytest.fixture(scope="module")
def on_openpai(shared_cloud: Cloud, folder: Path) -> Mapping[str, tuple[str, str]]:
    """Starts all rows on the local cluster: the name of each job, and the folder of its run on the storage."""
    world, (storage,) = OpenPaiWorld(shared_cloud), (shared_cloud.home / "storages").iterdir()
    config = {
        "trainyard:platform": "openpai",
        "trainyard:cluster": {"uri": shared_cloud.endpoint, "user": "user"},
        "trainyard:skus": {"small": {"cpus": 1, "memoryGb": 1}},
        "trainyard:storage": {"name": storage.name},
    }
    started = {}
    for name, row in ROWS.items():
        plan = openpai_plan(_plan(folder, name, row, config, shape={"name": "small"}))
        spec = plan.jobs["train"]
        inputs = openpai_run_inputs(plan, spec, spec.runs[name], read_files(plan, spec, folder), str)
        started[name] = world.submitted({**inputs["protocol"], "name": name}), str(storage / "vision" / "dev")
    return started


@pytest.fixture(scope="module")
def on_oci(
    shared_cloud: Cloud, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Nodes]]:
    """Starts the launchers of all rows."""
    place = Place(World(Clients(shared_cloud)), tmp_path_factory.mktemp("principal"))
    with ExitStack() as opened:
        started, shape = {}, {"name": "VM.Standard.E4.Flex", "ocpus": 1, "memoryGb": 8}
        # All of them share one loopback.
        free, _ = block(len(ROWS))
        for port, (name, row) in enumerate(ROWS.items(), free):
            label = "meeting" if row.framework == "farm" else "rendezvous"
            plan = _plan(folder, name, row, _OCI, shape=shape, ports={label: port})
            documents = plan.jobs["train"].runs[name].nodes
            home = tmp_path_factory.mktemp(name)
            run = opened.enter_context(nodes(place, home, job(), name, documents))
            run.script(_SCRIPT)
            started[name] = run.start()
        yield started


@pytest.mark.parametrize("name", ROWS)
def test_a_run_has_the_same_outcome_on_oci_and_openpai(
    name: str, on_openpai: Mapping[str, tuple[str, str]], on_oci: Mapping[str, Nodes], shared_cloud: Cloud
) -> None:
    row, ranks = ROWS[name], range(len(ROWS[name].tries))
    job_name, storage = on_openpai[name]
    ended = OpenPaiWorld(shared_cloud).ended(job_name)
    kept = Path(storage, "train", name, "checkpoints")
    tries = tuple(int((kept / f"tries-{rank}").read_text()) for rank in ranks)
    assert (ended["jobStatus"]["state"], tries) == (row.ends, row.tries), json.dumps(ended, indent=1)
    run = on_oci[name]
    codes = run.codes()
    assert run.place is not None
    lives = tuple(run.place.status(run, rank)["tries"] for rank in ranks)
    # The main node's job run says how the run has ended.
    assert (_SUCCEEDS if codes[0] == 0 else _FAILS, lives) == (row.ends, row.tries), run.shown()
