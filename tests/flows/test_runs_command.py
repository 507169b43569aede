# SPDX-License-Identifier: Apache-2.0
"""`trainyard runs` as a command, on real job runs of a local cloud."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import socket
from typing import Any

import oci
import pytest

from components.oci.client import job_runs
from tests.support.cloud_world import World
from tests.support.waiting import LONGEST_SECONDS, eventually

ROOT = Path(__file__).resolve().parents[2]
# Prints, then waits until it is ended or its file exists; the time limit matters only if the test is killed.
SCRIPT = """
import os, pathlib, time
print("[" + os.environ["NODE"] + "] begins", flush=True)
end = time.monotonic() + 600
while not (pathlib.Path.home() / "ends").exists() and time.monotonic() < end:
    time.sleep(0.05)
print("over", flush=True)
"""
# The entry that makes two of the job's runs a sweep.
SWEPT = """
config:
  trainyard:team: demo
  trainyard:environment: dev
  trainyard:platform: oci
  trainyard:jobs:
    line:
      framework: pytorch
      image: example.com/image:1
      shape: { name: VM.Standard.E4.Flex, ocpus: 1, memory: 8 }
      roles: { main: 1 }
      command: train.py
      runs:
        sweep: { each: { lr: [0.1, 0.01] }, args: [--lr, "${each.lr}"] }
"""


@pytest.fixture(scope="module")
def job(world: World) -> str:
    return world.job(SCRIPT)


def start(world: World, job: str, run: str, attempt: int = 1, nodes: int = 2) -> list[Any]:
    """The job runs of one training run, as the provider makes them."""
    folder = f"oci://runs@{world.clients.cloud.namespace}/line/{run}/{attempt}"
    made: list[Any] = []
    for rank in range(nodes):
        launch = {"role": "worker", "roles": [{"name": "worker", "replicas": nodes}], "folder": folder}
        variables = {
            "NODE": f"worker-{rank}",
            "TRAINYARD_LAUNCH": json.dumps({**launch, "attempt": attempt}),
            **({job_runs.MAIN_VARIABLE: made[0].id} if made else {}),
        }
        tags = {
            "stack": "demo",
            "job": "line",
            "run": run,
            job_runs.RUN_TAG: f"{run}-{attempt}",
            job_runs.NODE_TAG: f"{rank}/worker/worker-{rank}",
        }
        models = oci.data_science.models
        override = models.DefaultJobConfigurationDetails(environment_variables=variables)
        made.append(world.run(job, freeform_tags=tags, job_configuration_override_details=override))
    return made


def end(world: World, made: Iterable[Any]) -> None:
    for one in made:
        (world.home(one) / "ends").touch()


def words(world: World, command: str, *more: str) -> list[str]:
    home = str(world.clients.cloud.home)
    return [sys.executable, "-m", "trainyard", "runs", command, "demo", *more, "--home", home]


def trainyard(world: World, command: str, *more: str, env: Mapping[str, str] = os.environ) -> Any:
    return subprocess.run(
        words(world, command, *more),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
        env=env,
        stdin=subprocess.DEVNULL,
    )


def runs_bucket(world: World) -> Any:
    """The storage client, after the bucket in the runs' launch documents was made."""
    storage, models = world.clients.storage, oci.object_storage.models
    with suppress(oci.exceptions.ServiceError):
        details = models.CreateBucketDetails(name="runs", compartment_id=world.compartment)
        storage.create_bucket(world.clients.cloud.namespace, details)
    return storage


def as_a_user_who_may_see_runs(world: World, *words: str) -> Any:
    """Everything but the bucket, so that a user sees what is missing."""
    identity, models = world.clients.identity, oci.identity.models
    statement = f"Allow group scientists to read data-science-job-runs in compartment id {world.compartment}"
    details = models.CreatePolicyDetails(
        compartment_id=world.compartment, name="see-runs", description="see", statements=[statement]
    )
    policy = identity.create_policy(details).data
    try:
        return trainyard(world, *words)
    finally:
        identity.delete_policy(policy.id)


@contextmanager
def watching(world: World, command: str, *more: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        words(world, command, *more, "--every", "0.2"), cwd=ROOT, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_runs_shows_each_ranks_state_and_launcher_status(world: World, job: str) -> None:
    made = start(world, job, "listed")
    for one in made:
        eventually(lambda one=one: world.read(one), lambda run: run.lifecycle_state == "IN_PROGRESS")  # type: ignore[misc]
    namespace, storage = world.clients.cloud.namespace, runs_bucket(world)
    status = {"rank": 0, "state": "waiting", "progress": {"step": 7}, "reason": ""}
    start_folder = f"line/listed/1/{job_runs.start_of_job_run(made[0].id, {})}"
    storage.put_object(namespace, "runs", f"{start_folder}/status/0.json", json.dumps(status))
    earlier = {**status, "progress": {"step": 99}}
    for folder in ("line/listed/1", "line/listed/1/startofbefore"):
        storage.put_object(namespace, "runs", f"{folder}/status/0.json", json.dumps(earlier))

    shown = trainyard(world, "list", "line/listed")
    assert shown.returncode == 0, shown.stderr
    rows = [line.split() for line in shown.stdout.splitlines()[2:]]
    assert [row[:3] for row in rows] == [["0", "worker-0", "waiting"], ["1", "worker-1", "IN_PROGRESS"]]
    assert rows[0][-2:] == ["step", "7"]

    end(world, made)
    watched = trainyard(world, "watch", "line/listed", "--every", "0.2")
    assert watched.returncode == 0, watched.stderr
    last = [line.split(" ", 1)[1] for line in watched.stdout.splitlines()][-2:]
    assert sorted(line.split(":")[0] for line in last) == ["line/listed rank 0 worker-0", "line/listed rank 1 worker-1"]
    assert all("SUCCEEDED" in line for line in last)

    again = start(world, job, "listed", attempt=2)
    end(world, again)
    for one in again:
        world.finished(one)
    (latest,) = json.loads(trainyard(world, "list", "line/listed", "--format", "json").stdout)
    assert (latest["attempt"], latest["state"]) == (2, "SUCCEEDED")
    both = json.loads(trainyard(world, "list", "line/listed", "--history", "--format", "json").stdout)
    assert [run["attempt"] for run in both] == [1, 2]


def test_logs_merges_all_ranks_with_prefixes(world: World, job: str) -> None:
    made = start(world, job, "printing")
    with watching(world, "logs", "line/printing", "--follow") as following:
        assert following.stdout is not None
        first = [following.stdout.readline().strip() for _ in made]
        assert sorted(first) == ["[0 worker-0] begins", "[1 worker-1] begins"], "while the runs go on"
        end(world, made)
        rest, errors = following.communicate(timeout=LONGEST_SECONDS)
        assert following.returncode == 0, errors
    assert sorted(rest.split("\n")[:-1]) == ["[0 worker-0] over", "[1 worker-1] over"]
    one = trainyard(world, "logs", "line/printing", "--rank", "1")
    assert one.stdout.splitlines() == ["[1 worker-1] begins", "[1 worker-1] over"]


@pytest.mark.parametrize("command", ["watch", "logs"])
def test_ctrl_c_ends_the_command_at_once_without_a_traceback(world: World, job: str, command: str) -> None:
    made = start(world, job, f"stopped-{command}")
    follow = ["--follow"] if command == "logs" else []
    with watching(world, command, f"line/stopped-{command}", *follow) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        asked = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LONGEST_SECONDS)
        assert process.returncode == 130
        assert "Traceback" not in errors
        assert time.monotonic() - asked < 30
    end(world, made)


def test_cancel_ends_every_rank_and_watch_says_that_it_did_not_succeed(world: World, job: str) -> None:
    made = start(world, job, "unwanted")
    for one in made:
        world.printed(one, "begins")
    unasked = trainyard(world, "cancel", "line/unwanted")
    assert unasked.returncode == 2
    assert "To answer yes, add --yes." in unasked.stderr
    done = trainyard(world, "cancel", "line/unwanted", "--yes")
    assert done.stdout == "Asked to end: line/unwanted.\n", done.stderr
    assert {world.finished(one).lifecycle_state for one in made} == {"CANCELED"}
    assert trainyard(world, "watch", "line/unwanted").returncode == 1
    assert "Nothing to end" in trainyard(world, "cancel", "line/unwanted", "--yes").stdout


def test_without_local_the_environment_and_profile_are_used(world: World, job: str, tmp_path: Path) -> None:
    """No `--home`: only what `trainyard cloud env` sets says where the cloud is."""
    (tmp_path / "Pulumi.demo.yaml").write_text(f"config:\n  trainyard:compartment: {world.compartment}\n")
    made = start(world, job, "elsewhere")
    end(world, made)
    for one in made:
        world.finished(one)

    def listed(profile: str) -> Any:
        command = [
            sys.executable,
            "-m",
            "trainyard",
            "runs",
            "list",
            str(tmp_path / "Pulumi.demo.yaml"),
            "line/elsewhere",
        ]
        env = {**os.environ, **world.clients.cloud.env_for(profile)}
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_SECONDS, env=env)

    assert "demo line/elsewhere: SUCCEEDED" in listed("deployer").stdout
    refused = listed("user")
    assert refused.returncode == 1
    assert "trainyard access" in refused.stderr, "what to do about it"
    assert "Traceback" not in refused.stderr


def test_a_cloud_that_does_not_answer_times_out_soon(world: World, tmp_path: Path) -> None:
    """The user may mean the local cloud in this folder."""
    cloud = world.clients.cloud
    (tmp_path / "Pulumi.demo.yaml").write_text(f"config:\n  trainyard:compartment: {world.compartment}\n")
    with socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
        overrides = {name: value.replace(cloud.endpoint, nobody) for name, value in cloud.env.items()}
        away = subprocess.run(
            [sys.executable, "-m", "trainyard", "runs", "list", str(tmp_path / "Pulumi.demo.yaml")], cwd=ROOT,
            capture_output=True, text=True, timeout=LONGEST_SECONDS,
            env={**os.environ, **overrides, "TRAINYARD_HOME": str(cloud.home.parent)},
        )  # fmt: skip
    assert away.returncode == 1
    assert "trying again for up to 10 s" in away.stderr
    assert f"A local cloud runs in {cloud.home}: with `--local` you see its runs." in away.stderr
    assert "Traceback" not in away.stderr


def test_outputs_of_runs_are_listed_and_fetched(world: World, job: str, tmp_path: Path) -> None:
    storage, namespace = runs_bucket(world), world.clients.cloud.namespace
    made = start(world, job, "kept", nodes=1)
    folder = f"line/kept/1/{job_runs.start_of_job_run(made[0].id, {})}"
    files = {"model.pt": b"weights", "workdir/snapshot.pt": b"s", "rank-1/x": b"", "\x1b[2J/evil": b"e"}
    for name, content in files.items():
        storage.put_object(namespace, "runs", f"{folder}/output/{name}", content)
    storage.put_object(namespace, "runs", f"{folder}/status/0.json", b"{}")

    listed = trainyard(world, "outputs", "line/kept")
    assert listed.returncode == 0, listed.stderr
    assert "still going: what is there so far" in listed.stdout
    assert f"oci://runs@{namespace}/{folder}/output/" in listed.stdout
    assert "  7 bytes  " in listed.stdout
    assert "4 files, 9 bytes" in listed.stdout
    assert "The same command with `--to DIR` fetches them." in listed.stdout
    assert "\x1b" not in listed.stdout
    (shown,) = json.loads(trainyard(world, "outputs", "line/kept", "--format", "json").stdout)
    assert {file["name"]: file["size"] for file in shown["files"]} == {n: len(c) for n, c in files.items()}

    end(world, made)
    world.finished(made[0])
    fetched = trainyard(world, "outputs", "line/kept", "--to", str(tmp_path / "results"))
    assert fetched.returncode == 1
    assert "not fetched: " in fetched.stderr
    assert "evil" in fetched.stderr
    below = tmp_path / "results" / "line" / "kept"
    got = {str(path.relative_to(below)): path.read_bytes() for path in below.rglob("*") if path.is_file()}
    assert got == {name: content for name, content in files.items() if "evil" not in name}
    again = trainyard(world, "outputs", "line/kept", "--to", str(tmp_path / "results"))
    assert "fetched: 0 files, 0 bytes" in again.stdout
    refused = as_a_user_who_may_see_runs(world, "outputs", "line/kept", "--profile", "user")
    assert refused.returncode == 1
    assert "Allow group YOUR-GROUP to inspect objects in compartment id" in refused.stderr
    assert "where target.bucket.name = 'runs'" in refused.stderr
    meant = trainyard(world, "outputs", "line/kep")
    assert meant.returncode == 1
    assert "did you mean `line/kept`?" in meant.stderr


def test_hostile_run_names_never_leave_the_folder(world: World, job: str, tmp_path: Path) -> None:
    """Users who may start job runs can choose any tags."""
    storage, namespace = runs_bucket(world), world.clients.cloud.namespace
    made = start(world, job, "../../../out", nodes=1)
    folder = f"line/../../../out/1/{job_runs.start_of_job_run(made[0].id, {})}"
    storage.put_object(namespace, "runs", f"{folder}/output/x", b"x", enable_strict_url_encoding=True)
    end(world, made)
    world.finished(made[0])
    fetched = trainyard(world, "outputs", "line/../../../out", "--to", str(tmp_path / "a" / "b" / "c"))
    assert fetched.returncode == 1, fetched.stdout
    assert "not fetched: " in fetched.stderr
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("platform", ["told", "../oci"])
def test_a_platform_without_runs_is_named(platform: str, tmp_path: Path) -> None:
    """Includes names that no platform has: the file may have errors."""
    (tmp_path / "Pulumi.demo.yaml").write_text(f"config:\n  trainyard:platform: {platform}\n")
    command = [sys.executable, "-m", "trainyard", "runs", "list", str(tmp_path / "Pulumi.demo.yaml")]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_SECONDS)
    assert told.returncode == 2
    assert f"the stack runs on {platform}: `trainyard runs` cannot show runs there yet" in told.stderr


def test_a_missing_run_gives_a_remedy(world: World) -> None:
    nothing = trainyard(world, "watch", "line/no-such-run")
    assert nothing.returncode == 1
    assert "No runs line/no-such-run of the stack demo" in nothing.stderr
    nowhere = subprocess.run(
        [sys.executable, "-m", "trainyard", "runs"], cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_SECONDS
    )
    assert nowhere.returncode == 2
    assert "--place" in nowhere.stderr


def test_a_sweep_is_listed_with_its_best_run_first(world: World, job: str, tmp_path: Path) -> None:
    """`each:` in the stack file defines the runs of a sweep. A run whose name only begins with the same text is not
    one."""
    storage, namespace = runs_bucket(world), world.clients.cloud.namespace
    (tmp_path / "Pulumi.demo.yaml").write_text(SWEPT)
    stacks = ("--stacks", str(tmp_path))
    made = {name: start(world, job, name, nodes=1) for name in ("sweep-lr-0.1", "sweep-lr-0.01", "sweep-lr-10")}
    for name, key, content in (
        ("sweep-lr-0.1", "status/0.json", {"rank": 0, "state": "running", "progress": {"loss": 0.5, "seed": 3}}),
        ("sweep-lr-0.01", "status/0.json", {"rank": 0, "state": "running", "progress": {"loss": 0.7}}),
        ("sweep-lr-0.01", "output/workdir/result.json", {"loss": 0.2}),
    ):
        # No status is read of a run that waits for its machine.
        eventually(lambda run=made[name][0]: world.read(run), lambda run: run.lifecycle_state == "IN_PROGRESS")  # type: ignore[misc]
        folder = f"line/{name}/1/{job_runs.start_of_job_run(made[name][0].id, {})}"
        storage.put_object(namespace, "runs", f"{folder}/{key}", json.dumps(content))

    listed = trainyard(world, "list", "line/sweep", *stacks)
    assert listed.returncode == 0, listed.stderr
    head, _, *rows = listed.stdout.splitlines()
    assert head == "by loss, lowest first (--highest turns it around)"
    assert [row.split()[:3] for row in rows] == [["1", "0.2", "result.json"], ["2", "0.5", "last"]]
    assert "line/sweep-lr-0.01 " in rows[0]
    assert "line/sweep-lr-0.1 " in rows[1]
    by_seed = trainyard(world, "list", "line/sweep", "--by", "seed", *stacks).stdout.splitlines()
    assert by_seed[-1].startswith("no seed: line/sweep-lr-0.01, "), by_seed
    ranked = json.loads(trainyard(world, "list", "line/sweep", "--highest", "--format", "json", *stacks).stdout)
    assert [one["metric"]["value"] for one in ranked] == [0.5, 0.2]
    unknown = trainyard(world, "list", "line/sweep", "--by", "los", *stacks)
    assert unknown.returncode == 1
    assert "did you mean `loss`?" in unknown.stderr

    fetched = trainyard(world, "outputs", "line/sweep", "--to", str(tmp_path / "results"), *stacks)
    assert fetched.returncode == 0, fetched.stderr
    assert (tmp_path / "results" / "line" / "sweep-lr-0.01" / "workdir" / "result.json").is_file()
    ended = trainyard(world, "cancel", "line/sweep", "--yes", *stacks)
    assert ended.stdout == "Asked to end: 2 runs of the sweep line/sweep.\n", ended.stderr
    for name in ("sweep-lr-0.1", "sweep-lr-0.01"):
        assert world.finished(made[name][0]).lifecycle_state == "CANCELED"
    assert not job_runs.node_of_job_run(world.read(made["sweep-lr-10"][0])).over
    logged = trainyard(world, "logs", "line/sweep", *stacks)
    assert logged.returncode == 0, logged.stderr
    end(world, made["sweep-lr-10"])
    world.finished(made["sweep-lr-10"][0])


def test_failed_runs_can_be_listed_alone(world: World) -> None:
    made = start(world, world.job("raise SystemExit(3)"), "broken", nodes=1)
    assert world.finished(made[0]).lifecycle_state == "FAILED"
    failed = trainyard(world, "list", "line", "--failed").stdout.splitlines()
    assert [line.split()[:2] for line in failed] == [["run", "state"], ["line/broken", "FAILED"]]
    assert "code 3" in failed[1]
