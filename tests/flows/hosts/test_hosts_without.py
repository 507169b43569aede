# SPDX-License-Identifier: Apache-2.0
"""Where the system gives no namespaces, or the tools are missing, no run starts, unless somebody asked by name to go
without; then what is not enforced is said."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.cloud import cloud as command
from localcloud import admin, control
from localcloud.control import Cloud
from localcloud.isolation import REQUIRED, VARIABLE, WHERE_POSSIBLE
from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import World
from tests.support.network_world import Network

_START = "import sys; from pathlib import Path; from localcloud import control; control.start(Path(sys.argv[1]))"
# Each takes something from the cloud that is really there, by a namespace in which it is not.
LACKS = {
    "namespaces": ("echo 0 >/proc/sys/user/max_net_namespaces", "refuses namespaces"),
    "nft": (
        "mount --bind /dev/null $(PATH=/usr/sbin:/sbin:$PATH command -v nft)",
        "nft not found; install the packages",
    ),
}


@contextmanager
def lacking(lack: str, home: Path, isolation: str) -> Iterator[Cloud]:
    """A cloud on a machine that lacks something."""
    try:
        inside = ("sh", "-ec", f'{LACKS[lack][0]}; exec "$@"', "sh", sys.executable, "-c", _START, str(home))
        subprocess.run(
            ["unshare", "--user", "--map-root-user", "--mount", *inside],
            check=True, timeout=120, cwd=Path(__file__).parents[3], env={**os.environ, VARIABLE: isolation},
        )  # fmt: skip
        cloud = control.running(home)
        assert cloud is not None
        yield cloud
    finally:
        control.stop(home)


@pytest.mark.parametrize("lack", LACKS)
def test_no_run_starts_behind_no_rules(lack: str, tmp_path: Path) -> None:
    with lacking(lack, tmp_path / "cloud", REQUIRED) as cloud:
        world = World(Clients(cloud))
        network = Network(world)
        run = network.cluster("tell('it ran')", network.subnet("10.0.1.0/24", [], []), 2)
        ended = world.finished(run)
        assert (ended.lifecycle_state, world.lines(run)) == ("FAILED", [])
        assert "cannot be enforced on this machine" in ended.lifecycle_details
        assert LACKS[lack][1] in ended.lifecycle_details
        assert f"--isolation {WHERE_POSSIBLE}" in ended.lifecycle_details
        assert LACKS[lack][1] in admin.why_not_enforced(cloud)
        assert "Traceback" not in (cloud.home / "server.log").read_text()


@pytest.mark.parametrize("lack", LACKS)
def test_who_asked_to_go_without_has_loopback_addresses_and_is_told_why(lack: str, tmp_path: Path) -> None:
    with lacking(lack, tmp_path / "cloud", WHERE_POSSIBLE) as cloud:
        _without(cloud, LACKS[lack][1], has_places=lack == "nft")


def test_an_isolation_that_is_none_starts_no_cloud(tmp_path: Path) -> None:
    with pytest.raises(control.CloudError, match=f"{VARIABLE} must be required or where-possible, not 'no'"):
        control.start(tmp_path / "cloud", isolation="no")


def _without(cloud: Cloud, reason: str, has_places: bool) -> None:
    world = World(Clients(cloud))
    network = Network(world)
    subnet = network.subnet("10.0.1.0/24", [], [])
    script = """
here = peers(2)
own = os.environ['TRAINYARD_NODE_ADDRESS']
if os.environ['NODE_RANK'] == '0':
    socket.create_server((own, 5000)).accept()
else:
    reach(here[0], 5000)
tell(own)
"""
    run = network.cluster(script, subnet, 2)
    assert world.finished(run).lifecycle_state == "SUCCEEDED", world.lines(run)
    assert sorted(world.lines(run)) == ["127.0.1.2", "127.0.1.3"]
    seen = network.evidence(run)
    assert (seen["enforced"], reason in seen["reason"]) == (False, True), seen["reason"]
    assert [node["address"] for node in seen["nodes"]] == ["10.0.1.2", "10.0.1.3"]
    assert reason in admin.why_not_enforced(cloud)
    said = CliRunner().invoke(command, ["status", "--home", str(cloud.home)])
    assert said.exit_code == 0
    assert f"not enforced between the nodes of job runs: {seen['reason']}" in said.output
    last = network.cluster("tell(os.environ['HOME'])", subnet, 2)
    world.finished(last)
    assert (set(world.lines(last)) == {"/home/datascience"}) == has_places, "that needs namespaces, and no programs"
    log = (cloud.home / "server.log").read_text()
    assert log.count("no security rule is enforced") == 1
    assert "Traceback" not in log


def test_a_machine_that_can_says_so(cloud: Cloud) -> None:
    assert admin.why_not_enforced(cloud) == ""
    said = CliRunner().invoke(command, ["status", "--json", "--home", str(cloud.home)])
    assert json.loads(said.output)["rulesEnforced"] is True
    assert json.loads(said.output)["console"] == f"{cloud.endpoint}/console"
    text = CliRunner().invoke(command, ["status", "--home", str(cloud.home)]).output
    assert f"Console: {cloud.endpoint}/console" in text
    assert "AWS: account 123456789012, region us-east-1" in text


def test_a_node_without_a_network_of_its_own_cannot_set_the_machines(cloud: Cloud) -> None:
    world = World(Clients(cloud))
    # What it holds is written back, so that nothing would change if it could be.
    script = """
import os
path = '/proc/sys/net/ipv4/ip_local_port_range'
try:
    with open(path, 'r+') as file:
        held = file.read()
        file.seek(0)
        file.write(held)
    print('written')
except OSError as error:
    print('refused', error.errno in (1, 13, 30))
"""
    run = world.run(world.job(script))
    world.finished(run)
    assert world.lines(run) == ["refused True"]


def test_a_run_without_a_subnet_is_nobodys_network(cloud: Cloud) -> None:
    world = World(Clients(cloud))
    run = world.run(world.job("import os; print(os.environ['TRAINYARD_NODE_ADDRESS'])"))
    assert world.finished(run).lifecycle_state == "SUCCEEDED"
    assert world.lines(run) == ["127.0.0.1"]
    seen = admin.read_evidence(cloud, run.id)
    assert (seen["enforced"], "names no subnet" in seen["reason"]) == (False, True)
