# SPDX-License-Identifier: Apache-2.0
"""What runs leave in the bucket: outputs, also of failed runs, and checkpoints during training, which are found
again."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from launcher.sync import open_for_writing
from schemas.model import Job, Retry, Role
from tests.support.nodes import Place, nodes, planned, waited

# Trains ten steps, with a file for each. Fails once in the middle if it is told to. Resumes from existing files.
TRAINS = """
import json, os, sys, time
rank, folder = int(os.environ["RANK"]), os.environ["TRAINYARD_CHECKPOINTS"]
first = max([int(name.split("-")[1]) for name in os.listdir(folder)], default=0)
print("goes on from", first, flush=True)
for step in range(first + 1, 11):
    with open(os.environ["TRAINYARD_PROGRESS"], "a") as progress:
        progress.write(json.dumps({"step": step, "loss": 1 / step}) + "\\n")
    if rank == 0:
        with open(f"{folder}/.draft.tmp", "w") as draft:
            draft.write(f"step {step}")
        os.replace(f"{folder}/.draft.tmp", f"{folder}/step-{step}")
    if step == 5 and first == 0 and rank == int(sys.argv[1]):
        # Waits until all ranks, and the bucket, have this step.
        deadline = time.monotonic() + 60
        while rank != 0 and not os.path.exists("kept") and time.monotonic() < deadline:
            time.sleep(0.05)
        sys.exit(3)
    while step == 5 and first == 0 and int(sys.argv[1]) not in (rank, -1):
        time.sleep(0.05)
os.makedirs(os.environ["TRAINYARD_OUTPUT"] + "/model", exist_ok=True)
with open(os.environ["TRAINYARD_OUTPUT"] + "/model/weights", "w") as weights:
    weights.write(f"of rank {rank}")
with open(os.environ["OCI__SYNC_DIR"] + "/ads", "w") as more:
    more.write("as ADS scripts do")
"""


def gang(retries: int = 0) -> Job:
    roles = {"main": Role(1, retry=Retry(retries)), "worker": Role(1, retry=Retry(retries))}
    return planned("pytorch", roles, ports={"data": "all"})


def test_output_is_uploaded_and_the_status_has_the_progress(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(), "output") as run:
        run.script(TRAINS)
        run.changes = {"command": ["train.py", "-1"]}
        assert run.start().codes() == [0, 0]
        assert place.content(f"{run.folder}/output/model/weights") == b"of rank 0"
        assert place.content(f"{run.folder}/output/rank-1/model/weights") == b"of rank 1"
        assert place.content(f"{run.folder}/output/ads") == b"as ADS scripts do"
        told = place.status(run, 0)
        assert told["progress"] == {"step": 10, "loss": 0.1}
        assert 0 < told["firstStepSeconds"] < 60
        assert (told["node"], told["role"], told["address"]) == ("main-0", "main", "127.0.0.1")
        assert not list(tmp_path.glob("node-*/trainyard-*")), "the node's own folders go once they are saved"


def test_output_of_a_failed_run_is_uploaded_too(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(), "failed-output") as run:
        run.script('import os\nopen(os.environ["TRAINYARD_OUTPUT"] + "/log", "w").write("so far")\nraise SystemExit(9)')
        run.changes = {"command": ["train.py"]}
        run.start()
        assert set(run.codes()) == {9}
        # Either rank may be first. The other may be stopped before its script has written anything.
        saved = [name for name in place.objects(f"{run.folder}/output/") if name.endswith("/log")]
        assert saved
        assert {place.content(name) for name in saved} <= {b"so far", b""}
        assert b"so far" in {place.content(name) for name in saved}


HOSTILE = """
import os
os.chdir(os.environ["TRAINYARD_OUTPUT"])
os.mkfifo("pipe")
for name in (b"good", b"\\xff\\xfe", b"new\\nline", "ü".encode(), b"a" * 250):
    open(name, "w").write("kept")
os.symlink("/etc/hostname", "link")
"""


def test_a_file_that_cannot_be_uploaded_does_not_lose_the_others(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, planned("pytorch", {"main": 1}), "hostile") as run:
        run.script(HOSTILE)
        run.changes = {"command": ["train.py"]}
        assert run.start().codes() == [0]
        names = {name.partition("/output/")[2] for name in place.objects(f"{run.folder}/output/")}
        assert {"good", "ü", "a" * 250} <= names
        assert not names & {"pipe", "link"}
        assert "'\\udcff\\udcfe' is not uploaded to the bucket: its name is not UTF-8" in run.launchers[0].text


def test_a_restarted_gang_resumes_from_its_checkpoints(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(1), "resumes") as run:
        run.script(TRAINS)
        run.changes = {"command": ["train.py", "1"]}
        run.start()
        waited(lambda: f"train/{run.name}/checkpoints/step-5" in place.objects(f"train/{run.name}/checkpoints/"))
        (tmp_path / "kept").touch()
        assert run.codes() == [0, 0]
        # Rank 1 wrote none itself: it found those of rank 0 in the bucket.
        for started in run.launchers.values():
            assert "goes on from 5" in started.text
        kept = [name.rpartition("/")[2] for name in place.objects(f"train/{run.name}/checkpoints/")]
        assert sorted(kept) == sorted(f"step-{step}" for step in range(1, 11))


def test_a_new_attempt_finds_the_checkpoints_of_a_lost_one(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path / "first", planned("pytorch", {"main": 1}, ports={"data": "all"}), "attempts") as run:
        run.script(TRAINS)
        run.changes = {"command": ["train.py", "0"]}
        assert run.start().codes() == [3]
    with nodes(place, tmp_path / "second", planned("pytorch", {"main": 1}, ports={"data": "all"}), "attempts") as run:
        run.script(TRAINS)
        run.changes = {"command": ["train.py", "-1"], "attempt": 2, "folder": run.document(0)["folder"] + "0"}
        assert run.start().codes() == [0]
        assert "5 files of checkpoints restored" in run.launchers[0].text
        assert "goes on from 5" in run.launchers[0].text


HALF = """
import os, sys, time
with open(os.environ["TRAINYARD_CHECKPOINTS"] + "/whole", "w") as whole:
    whole.write("whole")
half = open(os.environ["TRAINYARD_CHECKPOINTS"] + "/half", "w")
half.write("half of a fi")
half.flush()
print("half way", flush=True)
time.sleep(300)
"""


def test_an_incomplete_checkpoint_is_never_uploaded(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, planned("pytorch", {"main": 1}, ports={"data": "all"}), "half") as run:
        run.script(HALF)
        run.changes = {"command": ["train.py"]}
        run.start()
        run.launchers[0].says("half way")
        waited(lambda: f"train/{run.name}/checkpoints/whole" in place.objects(f"train/{run.name}/checkpoints/"))
        run.launchers[0].process.terminate()
        assert run.codes() == [143]
        assert place.objects(f"train/{run.name}/checkpoints/") == [f"train/{run.name}/checkpoints/whole"]


def test_files_open_for_writing_are_detected(tmp_path: Path) -> None:
    (tmp_path / "read").write_text("x")
    with open(tmp_path / "written", "w"), open(tmp_path / "read"):
        assert open_for_writing(tmp_path) == {str(tmp_path / "written")}
    assert open_for_writing(tmp_path) == set()


def test_restored_checkpoints_keep_their_times(place: Place, tmp_path: Path) -> None:
    """Scripts that choose the latest checkpoint by its time get the right one after a restart, too."""
    script = """
import os
folder = os.environ["TRAINYARD_CHECKPOINTS"]
for name in sorted(os.listdir(folder)):
    print("time of", name, os.stat(f"{folder}/{name}").st_mtime, flush=True)
if not os.listdir(folder):
    open(f"{folder}/old", "w").close()
    os.utime(f"{folder}/old", (1000000000.25, 1000000000.25))
"""
    for attempt in ("first", "second"):
        spec = planned("pytorch", {"main": 1}, ports={"data": "all"})
        with nodes(place, tmp_path / attempt, spec, "times") as run:
            run.script(script)
            run.changes = {"command": ["train.py"]}
            assert run.start().codes() == [0]
            if attempt == "second":
                assert "time of old 1000000000.25" in run.launchers[0].text


def test_no_secret_is_printed_or_uploaded(place: Place, tmp_path: Path) -> None:
    spec = planned("pytorch", {"main": 1}, ports={"data": "all"})
    with nodes(place, tmp_path, spec, "secret") as run:
        secret = "planted-secret-value"
        run.changes = {"command": [f"no-such-{secret}"], "secrets": ["MY_THING"]}
        run.start(MY_THING=secret, OTHER_TOKEN="another-planted-one")
        assert run.codes() == [78]
        assert "no-such-****" in run.launchers[0].text
        kept = b"".join(place.content(name) for name in place.objects(f"{run.folder}/"))
        assert secret not in run.shown()
        assert secret.encode() not in kept
        assert json.loads(place.content(f"{run.folder}/status/0.json"))["reason"].startswith("`no-such-****`")


@pytest.mark.parametrize("kind", ["status", "drop"])
def test_a_temporary_outage_of_the_bucket_is_retried(place: Place, tmp_path: Path, kind: str) -> None:
    from localcloud.admin import add_fault, clear_faults

    cloud = place.world.clients.cloud
    with nodes(place, tmp_path, gang(), f"bucket-{kind}") as run:
        run.script(TRAINS)
        run.changes = {"command": ["train.py", "-1"]}
        place.environment  # noqa: B018  # made before anything goes wrong
        settings = {"status": 503} if kind == "status" else {}
        for operation in ("ListObjects", "PutObject", "GetObject"):
            add_fault(cloud, kind, operations=operation, rate=0.5, times=12, seed=os.getpid(), **settings)
        try:
            assert run.start().codes() == [0, 0]
        finally:
            clear_faults(cloud)
        assert place.content(f"{run.folder}/output/model/weights") == b"of rank 0"


CLOCK = """
import time
real = time.time
time.time = lambda: real() + {seconds}
"""


@pytest.mark.parametrize("seconds", [-7200, 7200])
def test_a_node_with_a_wrong_clock_uploads_its_artifacts(place: Place, tmp_path: Path, seconds: int) -> None:
    with nodes(place, tmp_path, gang(), f"clock{seconds}") as run:
        (tmp_path / "off").mkdir()
        (tmp_path / "off" / "sitecustomize.py").write_text(CLOCK.format(seconds=seconds))
        run.script(TRAINS)
        run.changes = {"command": ["train.py", "-1"]}
        run.start(0).start(1, PYTHONPATH=f"{tmp_path / 'off'}{os.pathsep}{run.environment(1)['PYTHONPATH']}")
        assert run.codes() == [0, 0]
        off = int(run.launchers[1].says(r"clock is off by (-?\d+) s")[1])
        assert abs(off - seconds) < 60, "the cloud's Date has whole seconds, and the way takes time"


def test_missing_access_to_the_bucket_is_reported(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(), "closed") as run:
        run.script(TRAINS)
        run.changes = {
            name: f"oci://no-such-bucket@{place.namespace}/train/closed/{name}" for name in ("folder", "checkpoints")
        }
        run.start(TRAINYARD_ACCESS_SECONDS="3")
        assert run.codes() == [78, 78]
        assert "no-such-bucket" in run.launchers[0].text
        assert "this run may not use " in run.launchers[0].text
        assert run.launchers[0].text.count("404 NotAuthorizedOrNotFound") == 2, "once at first, and in the last words"
        assert "(PUT /n/" in run.launchers[0].text
