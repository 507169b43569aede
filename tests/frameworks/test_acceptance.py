# SPDX-License-Identifier: Apache-2.0
"""A script without any code for trainyard loses a rank in its second epoch, and has the same result as without the
loss. Its secret is in no log.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import oci
import psutil
import pytest

from localcloud.environments.find import MissingEnvironment, find_environment
from tests.support.local_team import SEALED, Team
from tests.support.waiting import eventually

pytestmark = pytest.mark.engine
SCRIPT = Path(__file__).with_name("third_party")
LONGEST_SECONDS = 600.0
# A node's disk is removed with its run, so at the end the script's own log of all its lives is printed.
COMMAND = (
    "bash -c 'python ddp.py --loading-seconds 0.1 --resume-dir $TRAINYARD_CHECKPOINTS --out $TRAINYARD_OUTPUT"
    " && cat train-$RANK.log'"
)
JOB = {
    "framework": "pytorch",
    "image": "${registry}:1.0",
    "shape": {"name": "VM.Standard.E4.Flex", "ocpus": 1, "memoryGb": 8},
    "roles": {"main": {"replicas": 1, "retry": {"count": 1}}, "worker": {"replicas": 2, "retry": {"count": 1}}},
    "code": "./third-party",
    "command": COMMAND,
    "env": {"DATA_TOKEN": SEALED},
    "runs": {"calm": {"until": "finished"}, "struck": {"until": "finished"}},
}


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    missing = find_environment("pytorch")
    if isinstance(missing, MissingEnvironment):
        pytest.skip(f"not rehearsed: {missing.reason}; {missing.remedy}")
    one = Team(tmp_path)
    shutil.copytree(SCRIPT, one.stacks / "third-party")
    one.configure("jobs", {"ddp": JOB})
    yield one
    one.end()


def in_second_epoch(team: Team) -> psutil.Process | None:
    """The training process of rank 1, after its own log says that the second epoch has begun."""
    for process in psutil.Process(team.cloud.pid).children(recursive=True):
        try:
            told = process.environ() if "ddp.py" in process.cmdline() else {}
            launch = json.loads(told.get("TRAINYARD_LAUNCH", "{}"))
            log = Path(f"/proc/{process.pid}/cwd/train-1.log") if told else Path("none")
        except (psutil.Error, OSError):
            continue
        struck = launch.get("run") == "struck" and told.get("RANK") == "1"
        if struck and log.exists() and "epoch 2 batch 3" in log.read_text():
            return process
    return None


@pytest.mark.torture
def test_a_killed_rank_resumes_from_the_checkpoint_with_the_same_result(team: Team) -> None:
    assert team.cloud.pid
    with ThreadPoolExecutor(1) as pool:
        up = pool.submit(team.trainyard, "up", "local")
        found = eventually(lambda: in_second_epoch(team), lambda seen: bool(seen) or up.done(), LONGEST_SECONDS)
        assert found is not None, up.result()
        given = found.environ()["DATA_TOKEN"]
        found.kill()
        said = up.result()
    assert "run      ddp/calm: SUCCEEDED" in said
    assert "run      ddp/struck: SUCCEEDED" in said

    config = oci.config.from_file(str(team.cloud.config_file), "deployer")
    storage = oci.object_storage.ObjectStorageClient(config, service_endpoint=team.cloud.endpoint)
    bucket = ("trainyardlocal", "demo-local-training")
    names = [one.name for one in storage.list_objects(*bucket, prefix="ddp/", limit=1000).data.objects]
    output = [name for name in names if "/output/" in name]
    left = {name.split("/")[1]: name for name in output if "/workdir/" not in name}
    written = {(name.split("/")[1], name.rpartition("/workdir/")[2]) for name in output if "/workdir/" in name}
    assert written == {(run, f"train-{rank}.log") for run in ("calm", "struck") for rank in range(3)}
    assert len(output) == len(left) + len(written)
    assert [re.sub(r"/\w{12}/", "/START/", name) for name in left.values()] == [
        "ddp/calm/1/START/output/final.json", "ddp/struck/1/START/output/final.json",
    ]  # fmt: skip
    assert [name for name in names if name.startswith("ddp/struck/checkpoints/")] == [
        "ddp/struck/checkpoints/latest.pt"
    ]
    losses = {
        run: json.loads(storage.get_object(*bucket, left[run]).data.content)["loss"] for run in ("calm", "struck")
    }
    assert losses["struck"] == pytest.approx(losses["calm"], rel=1e-9)
    logs = [log.read_text() for log in (team.home / "cloud" / "runs").rglob("node-*.log")]
    begun = [[log.count(f"[1] epoch {epoch} batch 0\n") for epoch in (1, 2, 3)] for log in logs if "[1] epoch" in log]
    assert sorted(begun) == [[1, 1, 1], [1, 2, 1]], "it went on from its checkpoint, not from the beginning"
    told = [said, *(log.read_text("utf-8", "replace") for log in (team.home / "cloud").rglob("*.log"))]
    assert team.opened() == {given}, "the run was given what the configuration holds"
    assert not [text for text in told if given in text]
    team.trainyard("preview", "local", "--expect-no-changes")
