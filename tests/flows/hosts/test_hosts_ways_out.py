# SPDX-License-Identifier: Apache-2.0
"""A job cannot get out of its node: for any account that runs the cloud, with a subnet and without one."""

import ctypes
import json
import os
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import psutil
import pytest

from localcloud.control import Cloud
from tests.flows.hosts.conftest import nobodys_cloud, really_nobodys_cloud
from tests.flows.hosts.ways_out import GREEDY, WAYS, try_all
from tests.support.cloud_fixture import Clients, local_cloud
from tests.support.cloud_world import World
from tests.support.network_world import ANYWHERE, Network, egress, ingress

ROOT = Path(__file__).parents[3]
SECRET, ABSTRACT = secrets.token_hex(16), secrets.token_hex(16)
_CREATE, _REMOVE = 0o1000, 0


@contextmanager
def _shared_memory() -> Iterator[int]:
    """A shared memory segment of this machine that all users may read."""
    libc, key = ctypes.CDLL(None, use_errno=True), secrets.randbelow(1 << 30) + 1
    segment = libc.shmget(key, 4096, _CREATE | 0o666)
    assert segment >= 0
    try:
        yield key
    finally:
        libc.shmctl(segment, _REMOVE, None)


@contextmanager
def _planted(cloud: Cloud, other: str, folder: Path) -> Iterator[Mapping[str, str]]:
    """Makes the targets of the attempts, whose names are in the run's environment."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("0.0.0.0", 0)))
        by_name = stack.enter_context(socket.socket(socket.AF_UNIX))
        by_name.bind(f"\0{ABSTRACT}")
        by_name.listen()
        by_file = stack.enter_context(socket.socket(socket.AF_UNIX))
        by_file.bind(str(folder / "socket"))
        by_file.listen()
        for path in (folder / "temporary", folder / "key"):
            path.write_text(SECRET)
            path.chmod(0o644)
        shared = Path("/dev/shm") / SECRET
        shared.write_text(SECRET)
        stack.callback(shared.unlink)
        yield {
            f"WAY_{name}": str(value)
            for name, value in {
                "CLOUD": cloud.home, "OTHER": cloud.home / "runs" / other, "CHECKOUT": ROOT, "USER": Path.home(),
                "PLANTED": folder / "key", "TEMPORARY": folder / "temporary", "SECRET": SECRET[::-1],
                "ADDRESSES": _addresses(), "ABSTRACT": ABSTRACT, "SOCKET": folder / "socket",
                "SERVER": cloud.pid, "PORT": listener.getsockname()[1],
                "SEGMENT": stack.enter_context(_shared_memory()),
            }.items()
        }  # fmt: skip


def _addresses() -> str:
    found = (one for of_link in psutil.net_if_addrs().values() for one in of_link if one.family == socket.AF_INET)
    return " ".join(one.address for one in found if not ip_address(one.address).is_loopback)


# The account of the tests, without any privilege, and an account that owns nothing on this machine.
CLOUDS = {"own": local_cloud, "unprivileged": nobodys_cloud, "nobody": really_nobodys_cloud}


@pytest.fixture(params=CLOUDS)
def held_cloud(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    monkeypatch.setenv("TRAINYARD_NOT_FOR_RUNS", SECRET)
    if request.param == "nobody" and os.geteuid():
        pytest.skip("only root can be somebody else")
    with CLOUDS[request.param](tmp_path / "cloud") as cloud:
        assert SECRET in Path(f"/proc/{cloud.pid}/environ").read_text(), "there is something to be found"
        yield cloud


def test_no_attempt_escapes_from_a_node(held_cloud: Cloud, tmp_path: Path) -> None:
    world = World(Clients(held_cloud))
    network = Network(world)
    subnet = network.subnet("10.0.1.0/24", [ingress("all", ANYWHERE)], [egress("all", ANYWHERE)])
    other = network.run("tell('here'); time.sleep(600)", subnet)
    world.printed(other, "here")
    before = _settings()
    with _planted(held_cloud, other.id, tmp_path) as variables:
        runs: list[Any] = [
            world.run(world.job(try_all(), variables=dict(variables))),
            network.run(try_all(), subnet, **variables),
        ]
        for run in runs:
            done = world.finished(run)
            said = world.lines(run)
            assert (done.lifecycle_state, said[-1:]) == ("SUCCEEDED", ["all tried"]), (done.lifecycle_details, said)
            tried = [line.split(" ", 2) for line in said[:-1]]
            assert [int(number) for number, *_ in tried] == list(range(len(WAYS)))
            out = {WAYS[int(number)].name: what for number, came, what in tried if came != "held"}
            assert not out, out
    assert _settings() == before
    assert world.read(other).lifecycle_state == "IN_PROGRESS"
    world.clients.data_science.cancel_job_run(other.id)
    world.finished(other)


def _settings() -> list[str]:
    paths = ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/net/ipv4/ip_local_port_range")
    return [Path(path).read_text() for path in paths]


# Without control groups the watcher limits nodes; root in its own namespace may not make control groups there.
ACCOUNTS = {"held": ("unshare", "--mount"), "watched": ("unshare", "--user", "--map-root-user", "--mount")}


@pytest.mark.torture
@pytest.mark.parametrize("how", ACCOUNTS)
def test_a_greedy_run_is_held_to_the_limits_of_its_node(how: str, tmp_path: Path) -> None:
    if how == "held" and os.geteuid():
        pytest.skip("only root's nodes are held by control groups here")
    done = subprocess.run(
        [*ACCOUNTS[how], sys.executable, "-m", "tests.flows.hosts.greedy_work", str(tmp_path), how],
        capture_output=True, text=True, timeout=600, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told.pop("server")
    assert told.pop("afterwards") == ["SUCCEEDED", "", "still here"]
    assert set(told) == {way.name for way in GREEDY}
    for name, (state, details, *said) in told.items():
        assert state == "FAILED", name
        why = " ".join((details, *said))
        assert re.search(ENDED_BY[name], why), (name, why)


# Enforced by the kernel if there are control groups, otherwise by the watcher.
_MEMORY = "used all its memory|of memory; 1.0 GiB is the most|killed by SIGKILL"
ENDED_BY = {
    "make processes without end": f"Resource temporarily unavailable|processes and threads; 4096|{_MEMORY}",
    "take all memory": _MEMORY,
    "take memory under no name": f"{_MEMORY}|File too large",
    "fill the disk": "the most a node of this run may have",
    "fill the disk with files that have no name": "the most a node of this run may have",
    "move files while they are counted": "the most a node",
    "fill the disk with mapped files": "the most a node of this run may have|the disk is nearly full",
    "fill the disk with files in messages": "the disk is nearly full",
    "print without end": "the most a node may print",
    "make files without end": "files, the most a node may have",
}


def test_the_trust_page_lists_every_escape_attempt() -> None:
    page = (ROOT / "docs" / "trust.md").read_text()
    rows = re.findall(r"^\| (?P<name>[^|]+) \| (?P<stop>[^|]+) \|$", page, re.MULTILINE)
    listed = {name.strip(): stop.strip() for name, stop in rows}
    assert len(WAYS) + len(GREEDY) >= 70
    assert {way.name: way.stopped_by for way in (*WAYS, *GREEDY)}.items() <= listed.items()
