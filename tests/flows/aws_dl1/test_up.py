# SPDX-License-Identifier: Apache-2.0
"""A cluster of two nodes, from its stack file to runs that trained: the real engine, and machines that run."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from catalog.environments import Need
from localcloud import admin
from localcloud.environments.find import MissingEnvironment, find_environment_for
from tests.support.aws_clients import AwsClients
from tests.support.console_reader import console_runs, console_sections
from tests.support.local_team import Team, summary
from tests.support.programs import require_program
from tests.support.up_beside import kill, up_beside

pytestmark = pytest.mark.engine

STACK = "aws-dl1-resnet"
WARM = "warm-level-4.5"
SMALL = "train.py --epochs 1 --steps 2 --batch 2 --size 32 --blocks 14 --width 8"


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    if isinstance(find_environment_for(Need("pytorch", None, frozenset({"torch"}))), MissingEnvironment):
        pytest.skip("no local environment with PyTorch")
    require_program("ssh-keygen")
    one = Team(tmp_path, STACK)
    one.change("processes: 8, backend: hccl", "processes: 1, backend: hccl")
    one.change("train.py --epochs 90 --batch 256", SMALL)
    # The run with the second number waits for the first, and `up` waits for both.
    one.change("        base: {}", "        base: { until: finished, env: { HF_TOKEN: x } }")
    # A value with a dot is part of the names of tickets, log streams and folders.
    one.change('env: {LOG_LEVEL_ALL: "4"}', 'each: {level: ["4.5"]}\n          env: {LOG_LEVEL_ALL: "${each.level}"}')
    one.change("until: accepted", "until: finished")
    _set_token(one, "first")
    yield one
    one.end()


def _set_token(team: Team, value: str) -> None:
    """The secret of the run `base`, decrypted with the key of the local stack."""
    where = ("trainyard:jobs.resnet.runs.base.env.HF_TOKEN", "--local", "--stacks", str(team.stacks))
    (team.stacks.parent / "token").write_text(value)
    with (team.stacks.parent / "token").open() as typed:
        done = team.run("secret", "set", STACK, *where, stdin=typed.fileno())
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_cluster_trains_its_runs_one_after_the_other(team: Team) -> None:
    _offered_nowhere(team)
    machines = _comes_up(team)
    _on_the_console(team, machines)
    _old_versions_end(team)
    _goes_down(team)


def _comes_up(team: Team) -> list[str]:
    first = team.trainyard("up", STACK)
    assert "waits for run" in first, "the second run of the cluster waits, and says for which"
    _both_trained(team)
    machines = _machines(team)
    assert len(machines) == 2
    assert "unchanged" in team.trainyard("preview", STACK, "--expect-no-changes")
    return machines


def _goes_down(team: Team) -> None:
    down = team.trainyard("down", STACK, "--yes", "--delete-data")
    assert re.search(r"ends +machine resnet/main-0: running since", down)
    assert "Nothing is left; the local cloud is stopped." in down
    assert not list((team.home / "cloud" / "machines").glob("i-*"))


@pytest.mark.torture
def test_a_cluster_survives_kills_and_changes(team: Team) -> None:
    """`up` is killed: the next one continues, and nothing exists twice. Then the cloud is killed."""
    _killed_at_work(team)
    machines = _comes_up(team)

    team.change('--lr, "0.4"', '--lr, "0.5"')
    _set_token(team, "second")
    again = team.trainyard("up", STACK)
    runs = re.findall(r"trainyard:index:Run (\S+) replaced", again)
    assert sorted(runs) == ["resnet/base", f"resnet/{WARM}"], "another secret starts a run again, and so do arguments"
    assert summary(again)["replaced"] == 3, "the third is the version of the secret"
    assert not re.search(r"aws:ec2:\w+ .* (replac|creat|delet)", again), "and touch no machine"
    assert re.search(r"machine +resnet/main-0: running since \d{4}-", again), "what is up is said, and since when"
    assert _machines(team) == machines

    # The cloud is killed. Its machines come back with their records.
    os.kill(team.cloud.pid, signal.SIGKILL)
    assert "unchanged" in team.trainyard("preview", STACK, "--expect-no-changes")
    _renames_its_secret(team)
    _both_trained(team, "it has no Gaudi")  # the changed run went on from the checkpoint of the one before
    assert _machines(team) == machines
    place = ("--local", "--stacks", str(team.stacks))
    tried = team.run("run", STACK, f"resnet/{WARM}", "--name", "seen", "--follow", *place, "--", "--lr", "0.3")
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert "[machine] s0" in tried.stdout, "its lines, by the bucket of the stack"
    _goes_down(team)


def _offered_nowhere(team: Team) -> None:
    """No region offers DL1 any more: `up` says so before anything is made."""
    admin.add_fault(team.cloud, "limit", limit="dl1.24xlarge", value=0)
    done = team.attempt("preview", STACK)
    admin.clear_faults(team.cloud)
    assert done.returncode != 0
    assert "no zone of us-east-1 offers `dl1.24xlarge` to this account; since August 2026" in done.stdout + done.stderr


def _renames_its_secret(team: Team) -> None:
    """A renamed run keeps its secret: a second secret with the same name could not be made."""
    before = team.file.read_text()
    team.change("        base: {", "        first: {was: base, ")
    renamed = team.trainyard("preview", STACK)
    assert not {"create", "delete", "replace"} & set(summary(renamed)), renamed
    team.file.write_text(before)


def _killed_at_work(team: Team) -> None:
    with up_beside(team, stack=STACK) as up:
        deadline = time.monotonic() + 240
        while "aws:ec2:Instance" not in up.said():
            assert not up.over, up.said()
            assert time.monotonic() < deadline, up.said()
            time.sleep(0.05)
        family = up.family()
        kill(family)
        up.end(family)


def _both_trained(team: Team, wanted: str = r"epoch 1 loss \d") -> None:
    """Both runs, as `trainyard runs` shows them. Each trains on two ranks, with gloo."""
    done = team.run("runs", "watch", STACK, "--stacks", str(team.stacks), "--home", str(team.home / "cloud"))
    assert done.returncode == 0, done.stdout + done.stderr + _consoles(team)
    for run in ("base", WARM):
        printed = team.run(
            "runs", "logs", STACK, f"resnet/{run}", "--stacks", str(team.stacks), "--home", str(team.home / "cloud")
        ).stdout
        assert re.search(wanted, printed), printed
        assert "it has no Gaudi" in printed, "what stands in is said where people look"
        assert "gloo for HCCL" in printed


def _old_versions_end(team: Team) -> None:
    """Nodes rewrite their reports each minute, without old versions. Objects of users keep their versions."""
    s3 = AwsClients(team.cloud)["s3"]
    (bucket,) = s3.list_buckets()["Buckets"]
    rules = s3.get_bucket_lifecycle_configuration(Bucket=bucket["Name"])["Rules"]
    days = {
        rule["Filter"]["Prefix"]: rule["NoncurrentVersionExpiration"]["NoncurrentDays"]
        for rule in rules
        if "NoncurrentVersionExpiration" in rule
    }
    assert days == {".trainyard/clusters/": 1, "resnet/": 7}
    assert any("AbortIncompleteMultipartUpload" in rule for rule in rules)
    old = [one["Key"] for one in s3.list_object_versions(Bucket=bucket["Name"])["Versions"] if not one["IsLatest"]]
    assert any(key.startswith(".trainyard/clusters/") for key in old), "there are such versions"


def _on_the_console(team: Team, machines: list[str]) -> None:
    """The run's folder, whose address `up` prints at its end."""
    runs = console_runs(team.cloud)
    assert {title: run["state"] for title, run in runs.items()} == dict.fromkeys(
        ("resnet/base", f"resnet/{WARM}"), "SUCCEEDED"
    )
    for run in runs.values():
        assert [(rank["node"], rank["state"]) for rank in run["ranks"]] == [
            ("main-0", "SUCCEEDED"), ("worker-0", "SUCCEEDED"),
        ]  # fmt: skip
        assert any("epoch 1 loss" in line for line in run["lines"]), run["lines"]
        assert [rank["rank"] for rank in run["curves"]["ranks"]][:1] == [0]
        assert "loss" in run["curves"]["names"]
        assert "TRAINYARD_LAUNCH" in dict(run["facts"])["variables"]
    network = runs["resnet/base"]["network"]
    used = [(row["from"], row["to"]) for row in network["rows"] if row["kind"] == "used"]
    assert network["reason"] or (["worker"], ["main"]) in used, network
    sections = console_sections(team.cloud)
    (cluster,) = sections["Machines"]
    assert (cluster["name"], cluster["state"]) == ("resnet", "2 running")
    rows = cluster["tables"][0]["rows"]
    assert sorted(row[1] for row in rows) == machines
    assert all(re.match(r"\d{4}-\d\d-\d\dT", row[5]) for row in rows), "since when they are up"
    assert any(item["tables"][1]["title"].startswith("Security group") for item in sections["Networks"])
    assert any("Object" in row[3] for item in sections["Who may do what"] for row in item["tables"][0]["rows"])
    assert len(sections["Buckets"]) == 1


def _machines(team: Team) -> list[str]:
    return sorted(row["id"] for row in team.resources() if row["type"] == "aws:ec2/instance:Instance")


def _consoles(team: Team) -> str:
    with suppress(OSError):
        files = (team.home / "cloud" / "machines").glob("*/node-0.log")
        return "\n".join(file.read_text(errors="replace")[-2000:] for file in files)
    return ""
