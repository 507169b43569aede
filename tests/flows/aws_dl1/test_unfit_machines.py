# SPDX-License-Identifier: Apache-2.0
"""Machines on which the program cannot start: each reports that, and no other machine waits for it forever."""

from __future__ import annotations

import io
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from components.aws.node_setup import NodeSettings, user_data
from tests.support.interpreters import pythons
from tests.support.machine_cluster import (
    GROUP,
    JOB,
    KEY_SECRET,
    LAUNCHER,
    ClusterWorld,
    MachineProcess,
    cluster,
    launcher_archive,
)
from tests.support.waiting import eventually

NODE = "main-0"
THIS = Path(sys.executable)


def written_for(bucket: str, idle: float) -> str:
    return user_data(
        NodeSettings(
            region="us-east-1", bucket=bucket, job=JOB, launcher=LAUNCHER, log_group=GROUP, ssh_secret=KEY_SECRET,
            image="registry/train:1", release="1.15.1", efa_interfaces=4, stop_when_idle_minutes=idle,  # type: ignore[arg-type]
        )
    )  # fmt: skip


@contextmanager
def booted(
    aws: str, bucket: str, folder: Path, key: str, launcher: bytes | None = None, python: Path | None = THIS,
    idle: float = 0, tells: str = "",
) -> Iterator[tuple[ClusterWorld, MachineProcess]]:  # fmt: skip
    """One machine that has run its user data. `launcher`: the content of the launcher's object; empty: there is none.
    `tells`: the bucket in the user data, if it is another one."""
    with cluster(aws, bucket, folder, (NODE,), key, serve=False) as world:
        if launcher is not None:
            world.s3.delete_object(Bucket=bucket, Key=LAUNCHER)
        if launcher:
            world.s3.put_object(Bucket=bucket, Key=LAUNCHER, Body=launcher)
        machine = world.machines[NODE]
        machine.boot(written_for(tells or bucket, idle), python)
        yield world, machine


@pytest.mark.parametrize("python", [THIS, *pythons("3.7", "3.8")], ids=lambda python: python.parts[-3])
def test_a_machine_serves_on_the_pythons_that_gaudi_s_amis_have(
    aws: str, bucket: str, tmp_path: Path, private_key: str, python: Path
) -> None:
    with booted(aws, bucket, tmp_path, private_key, python=python) as (world, machine):
        world.report(NODE, "ready")
        world.ticket(1, "echo trained")
        assert world.ended(1)[NODE]["state"] == "SUCCEEDED", machine.console()
        assert "trained" in world.lines(1, NODE)


def test_a_ticket_updates_the_program_unless_the_new_one_does_not_start(
    aws: str, bucket: str, tmp_path: Path, private_key: str
) -> None:
    newer, broken = (f".trainyard/launcher/{name}.tar.gz" for name in ("newer", "broken"))
    with booted(aws, bucket, tmp_path, private_key) as (world, machine):
        for name, content in ((newer, launcher_archive()), (broken, archive("def broken(:"))):
            world.s3.put_object(Bucket=bucket, Key=name, Body=content)
        world.report(NODE, "ready")
        assert machine.process is not None
        for number, name in enumerate((newer, newer, broken), 1):
            world.ticket(number, "echo trained", launcher=name)
            assert world.ended(number)[NODE]["state"] == "SUCCEEDED", machine.console()
        assert machine.console().count("names a newer program") == 1
        assert "s00000001 names a newer program: continuing as newer" in machine.console()
        assert "the program of s00000003 is not used: the launcher does not start on Python" in machine.console()
        assert f"{machine.root}/opt/trainyard/launchers/newer" in process_words(machine)


def process_words(machine: MachineProcess) -> str:
    assert machine.process is not None
    return Path(f"/proc/{machine.process.pid}/cmdline").read_text()


def test_a_launcher_that_is_missing_is_reported_until_it_is_there(
    aws: str, bucket: str, tmp_path: Path, private_key: str
) -> None:
    with booted(aws, bucket, tmp_path, private_key, launcher=b"") as (world, machine):
        report = world.report(NODE, "failed")
        assert report["reason"].startswith(f"the launcher {LAUNCHER} cannot be fetched:")
        assert "404 NoSuchKey" in report["reason"]
        assert report["instance"] == "i-0"
        assert machine.process is not None
        assert machine.process.poll() is None, "systemd has nothing to start again"


def test_a_program_that_does_not_start_is_reported_with_its_last_output(
    aws: str, bucket: str, tmp_path: Path, private_key: str
) -> None:
    with booted(aws, bucket, tmp_path, private_key, launcher=archive("def broken(:")) as (world, _):
        reason = world.report(NODE, "failed")["reason"]
        version = ".".join(map(str, sys.version_info[:3]))
        assert reason.startswith(f"the launcher does not start on Python {version}: SyntaxError: "), reason


def test_a_machine_without_its_bucket_writes_to_its_console_and_stops_when_idle(
    aws: str, bucket: str, tmp_path: Path, private_key: str
) -> None:
    with booted(aws, bucket, tmp_path, private_key, idle=0.01, tells="nobody-has-it") as (_, machine):
        eventually(lambda: (machine.state / "down").exists(), describe=machine.console)
        assert "unfit: the launcher" in machine.console()
        assert "NoSuchBucket" in machine.console()
        assert "the bucket does not take the report" in machine.console()


def test_a_machine_whose_bucket_is_deleted_stops_when_idle(
    aws: str, bucket: str, tmp_path: Path, private_key: str
) -> None:
    with booted(aws, bucket, tmp_path, private_key, idle=0.05) as (world, machine):
        world.report(NODE, "ready")
        for row in world.s3.list_objects_v2(Bucket=bucket)["Contents"]:
            world.s3.delete_object(Bucket=bucket, Key=row["Key"])
        world.s3.delete_bucket(Bucket=bucket)
        eventually(lambda: (machine.state / "down").exists(), describe=machine.console)
        assert "and no bucket: the machine stops" in machine.console()


def test_a_machine_without_a_python_reports_that_and_is_not_restarted(tmp_path: Path) -> None:
    machine = MachineProcess(tmp_path, None, {})  # type: ignore[arg-type]
    machine.boot(written_for("vision-dev-runs", 30), None)
    assert machine.process is not None
    assert machine.process.wait(20) == 78
    assert "use an AMI with Python 3.7 or newer" in machine.console()
    unit = (tmp_path / "etc/systemd/system/trainyard-node.service").read_text()
    assert "RestartPreventExitStatus=78" in unit
    assert "StandardOutput=journal+console" in unit


def archive(program: str) -> bytes:
    """A launcher whose program for machines is this text."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as opened:
        for name in ("launcher/__init__.py", "launcher/aws_dl1/__init__.py", "launcher/aws_dl1/machine/__init__.py"):
            opened.addfile(tarfile.TarInfo(name))
        row = tarfile.TarInfo("launcher/aws_dl1/machine/__main__.py")
        row.size = len(program)
        opened.addfile(row, io.BytesIO(program.encode()))
    return buffer.getvalue()
