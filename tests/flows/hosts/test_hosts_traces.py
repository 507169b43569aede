# SPDX-License-Identifier: Apache-2.0
"""However a run or the whole cloud ends, none of its processes and namespaces is left."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localcloud import admin, control, files
from localcloud.control import Cloud
from localcloud.hosts.usage_watch import CONTINUE, STOP
from tests.support import traces
from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import World
from tests.support.network_world import ANYWHERE, Network, egress, ingress
from tests.support.waiting import eventually

_STAYS = """
import subprocess
child = subprocess.Popen(['sleep', '600'], start_new_session=True)
tell('child', child.pid, *(os.readlink('/proc/self/ns/' + kind) for kind in ('net', 'pid')))
time.sleep(600)
"""


@pytest.fixture
def world(cloud: Cloud) -> World:
    return World(Clients(cloud))


def _two_nodes(world: World) -> tuple[Network, Any, list[int], list[str]]:
    """A network with a living run of two nodes, their grandchildren, and the namespaces they are in."""
    network = Network(world)
    subnet = network.subnet("10.0.1.0/24", [ingress("all", ANYWHERE)], [egress("all", ANYWHERE)])
    run = network.cluster(_STAYS, subnet, 2)
    said = eventually(lambda: world.lines(run), lambda lines: len(lines) == 2, 60)
    children = _children(said)
    spaces = [line.split()[2] for line in said]
    assert len(set(spaces)) == 2
    assert set(spaces) <= traces.networks(world.clients.cloud.home)
    return network, run, children, spaces


def _children(said: list[str]) -> list[int]:
    return [traces.of_node(line.split()[3], int(line.split()[1])) for line in said]


def _gone(cloud: Cloud, children: list[int], spaces: list[str]) -> None:
    eventually(lambda: [each for each in children if files.process_start_time(each)], lambda left: not left, 60)
    eventually(lambda: traces.networks(cloud.home) & set(spaces), lambda left: not left, 60)


def _state(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines)


def _stands_still_for_a_count(child: int) -> None:
    """All processes of the node stop and go on, but for one that its own node has stopped."""
    os.kill(child, signal.SIGSTOP)
    eventually(lambda: _state(child)["State"], lambda state: state.startswith("T"))
    parent = first = int(_state(child)["PPid"])
    while _state(first)["NSpid"].split()[-1] != "1":
        first = int(_state(first)["PPid"])
    os.kill(first, STOP)
    eventually(lambda: _state(parent)["State"], lambda state: state.startswith("T"))
    os.kill(first, CONTINUE)
    eventually(lambda: _state(parent)["State"], lambda state: not state.startswith("T"))
    assert _state(child)["State"].startswith("T")


def test_a_cancelled_run_leaves_nothing(world: World, cloud: Cloud) -> None:
    _, run, children, spaces = _two_nodes(world)
    _stands_still_for_a_count(children[0])
    (site,) = traces.sites_of(cloud.pid)
    router = os.readlink(f"/proc/{site}/ns/net")
    world.clients.data_science.cancel_job_run(run.id)
    assert world.finished(run).lifecycle_state == "CANCELED"
    _gone(cloud, children, [*spaces, router])
    assert traces.sites_of(cloud.pid) == []
    assert admin.read_evidence(cloud, run.id)["enforced"]
    world.clients.data_science.delete_job_run(run.id)
    eventually(lambda: (cloud.home / "runs" / run.id).exists(), lambda there: not there)


def test_a_finished_run_removes_its_part_of_the_network(world: World, cloud: Cloud) -> None:
    network, run, children, spaces = _two_nodes(world)
    second = network.run("tell(os.readlink('/proc/self/ns/net'))", next(iter(network.lists)))
    assert world.finished(second).lifecycle_state == "SUCCEEDED"
    _gone(cloud, [], world.lines(second))
    assert len(traces.sites_of(cloud.pid)) == 1, "the first run's nodes still stand in it"
    assert set(spaces) <= traces.networks(world.clients.cloud.home)
    world.clients.data_science.cancel_job_run(run.id)
    world.finished(run)
    _gone(cloud, children, spaces)


def _kill(cloud: Cloud) -> None:
    os.kill(cloud.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "end",
    [_kill, lambda cloud: control.stop_cloud(cloud.home), lambda cloud: control.reset_cloud(cloud.home)],
    ids=["killed", "stopped", "reset"],
)
def test_a_cloud_that_ends_leaves_nothing(world: World, cloud: Cloud, end: Callable[[Cloud], object]) -> None:
    _, _, children, spaces = _two_nodes(world)
    (site,) = traces.sites_of(cloud.pid)
    router = os.readlink(f"/proc/{site}/ns/net")
    assert traces.groups_of(cloud.pid) or not os.access("/sys/fs/cgroup/pids", os.W_OK), "they are held by the kernel"
    end(cloud)
    _gone(cloud, [*children, site], [*spaces, router])
    eventually(lambda: traces.processes_of(cloud.home), lambda left: not left, 60)
    eventually(lambda: traces.groups_of(cloud.pid), lambda left: not left, 60)


def test_after_a_kill_the_next_cloud_restarts_the_run_at_the_same_addresses(world: World, cloud: Cloud) -> None:
    network, run, children, spaces = _two_nodes(world)
    (subnet,) = network.lists
    before = admin.read_evidence(cloud, run.id)["nodes"]
    _kill(cloud)
    _gone(cloud, children, spaces)
    control.start_cloud(cloud.home, port=int(cloud.endpoint.rpartition(":")[2]))
    said = eventually(lambda: world.lines(run), lambda lines: len(lines) == 4, 60)[2:]
    again = _children(said)
    assert world.read(run).lifecycle_state == "IN_PROGRESS"
    assert "Begun again" in world.read(run).lifecycle_details
    seen = admin.read_evidence(cloud, run.id)
    assert (seen["enforced"], seen["nodes"]) == (True, before)
    next_run = network.run("tell('fresh')", subnet)
    assert world.finished(next_run).lifecycle_state == "SUCCEEDED"
    world.clients.data_science.cancel_job_run(run.id)
    assert world.finished(run).lifecycle_state == "CANCELED"
    _gone(cloud, again, [line.split()[2] for line in said])


def test_a_dead_site_fails_only_its_own_runs(world: World, cloud: Cloud) -> None:
    network, run, children, spaces = _two_nodes(world)
    (site,) = traces.sites_of(cloud.pid)
    os.kill(site, signal.SIGKILL)
    second = network.run("tell('fresh')", next(iter(network.lists)))
    assert world.finished(second).lifecycle_state == "SUCCEEDED", world.lines(second)
    assert admin.read_evidence(cloud, second.id)["enforced"]
    assert "is gone" in admin.read_evidence(cloud, run.id)["reason"]
    world.clients.data_science.cancel_job_run(run.id)
    assert world.finished(run).lifecycle_state == "CANCELED"
    _gone(cloud, children, spaces)
