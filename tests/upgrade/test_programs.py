# SPDX-License-Identifier: Apache-2.0
"""Programs of an earlier release still train under this one: those on live machines, and those in images.

`programs/` has the launcher of commit 054d40d, which machines of that commit have on their disks, and which images of
it start.
"""

from __future__ import annotations

import base64
import hashlib
import json
import tarfile
from functools import partial
from pathlib import Path

import pytest

from components.platform.status import parse_status
from launcher.aws_dl1.machine.tickets import ENDS
from localcloud.control import Cloud
from tests.support.aws_clients import AwsClients
from tests.support.cloud_fixture import Clients, local_cloud
from tests.support.cloud_world import World
from tests.support.documents import document
from tests.support.local_machines import BUCKET, CODE, Earlier, LocalMachines
from tests.support.machine_cluster import GROUP, JOB, LAUNCHER, ROOT, launcher_archive
from tests.support.nodes import Place, gang, nodes
from tests.support.waiting import eventually

RECORDED = Path(__file__).parent / "programs" / "launcher-054d40d.tar.xz"
# Made by the same commit.
STATE = Path(__file__).parent / "0.2.0-aws-dl1" / "state.json"
NODE = "main-0"
NEWER = ".trainyard/launcher/fedcba9876543210.tar.gz"
SCRIPT = """
import hashlib, pathlib
print("by", hashlib.sha256(pathlib.Path("/opt/trainyard/launcher/launcher/node.py").read_bytes()).hexdigest())
"""


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("earlier")
    with tarfile.open(RECORDED) as archive:
        # Debian 12's Python does not have `filter`; newer versions warn without it.
        archive.extraction_filter = lambda member, _: member
        archive.extractall(folder)
    return folder / "launcher"


def _digest(launcher: Path) -> str:
    return hashlib.sha256((launcher / "node.py").read_bytes()).hexdigest()


def test_the_recording_is_of_another_release(earlier: Path) -> None:
    assert _digest(earlier) != _digest(ROOT / "launcher")


@pytest.mark.torture
def test_a_machine_of_an_earlier_release_trains_with_its_own_launcher_and_with_todays(
    earlier: Path, tmp_path: Path
) -> None:
    with local_cloud(tmp_path / "cloud") as cloud:
        machines = LocalMachines(
            AwsClients(cloud), tmp_path, (NODE,), {"probe.py": SCRIPT}, earlier=Earlier(earlier, _user_data())
        )
        machines.s3.put_object(Bucket=BUCKET, Key=NEWER, Body=launcher_archive())
        machines.ready()
        assert f"by {_digest(earlier)}" in _lines(machines, 1, LAUNCHER)
        assert f"by {_digest(ROOT / 'launcher')}" in _lines(machines, 2, NEWER)


def test_an_image_of_an_earlier_release_trains_todays_launch_documents(
    earlier: Path, shared_cloud: Cloud, tmp_path: Path
) -> None:
    """Its launcher reads today's launch documents, and its status is read by today's `runs`."""
    place = Place(World(Clients(shared_cloud)), tmp_path / "principal")
    home = tmp_path / "home"
    with nodes(place, home, gang(nodes=2), "earlier", variables={"PYTHONPATH": str(earlier.parent)}) as run:
        run.script("import os; print('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])")
        run.changes = {"command": ["train.py"]}
        assert run.start().codes() == [0, 0]
        for rank in (0, 1):
            assert f"rank {rank} of 2" in run.launchers[rank].text
            status = parse_status(place.content(f"{run.folder}/status/{rank}.json"))
            assert status is not None
            assert (status["rank"], status["state"]) == (rank, "succeeded")


def _user_data() -> str:
    rows = json.loads(STATE.read_text())["deployment"]["resources"]
    (template,) = [row for row in rows if row["type"] == "aws:ec2/launchTemplate:LaunchTemplate"]
    return base64.b64decode(template["inputs"]["userData"]).decode()


def _lines(machines: LocalMachines, number: int, launcher: str) -> str:
    """The output of a start whose ticket names this launcher."""
    row = {"name": "main", "replicas": 1, "service": False, "minFailed": 1, "minSucceeded": None}
    told = document(
        0, roles=[row], role="main", node=NODE, rank=0, folder=f"s3://{BUCKET}/{JOB}/base/1",
        checkpoints=f"s3://{BUCKET}/{JOB}/base/checkpoints", command=["probe.py"], processes=1,
    )  # fmt: skip
    node = {"name": NODE, "role": "main", "rank": 0, "arguments": [],
            "environment": {"TRAINYARD_LAUNCH": json.dumps(told)}}  # fmt: skip
    ticket = {"version": 1, "number": number, "run": "base", "image": "registry/train:1", "launcher": launcher,
              "code": CODE, "secret": "run-1", "nodes": [node]}  # fmt: skip
    key = f".trainyard/clusters/{JOB}/queue/{number:08}.json"
    machines.s3.put_object(Bucket=BUCKET, Key=key, Body=json.dumps(ticket).encode(), IfNoneMatch="*")
    machines.wake(NODE)
    state = eventually(
        partial(machines.get, f"starts/{number:08}/{NODE}.json"),
        lambda report: report.get("state") in ENDS,
        describe=machines.consoles,
    )
    events = machines.clients["logs"].get_log_events(
        logGroupName=GROUP, logStreamName=f"{JOB}/base/s{number:08}/{NODE}", startFromHead=True
    )["events"]
    lines = "\n".join(event["message"] for event in events)
    assert state["state"] == "SUCCEEDED", f"{state}\n{lines}{machines.consoles()}"
    return lines
