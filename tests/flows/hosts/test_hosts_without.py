# SPDX-License-Identifier: Apache-2.0
"""Without namespaces, filters or tools, no run starts, unless the user explicitly allows it. Then the output says what
is not enforced."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from localcloud import admin, control
from localcloud.control import Cloud
from localcloud.environments.cache import environments_cache
from localcloud.files import REQUIRED, VARIABLE, WHERE_POSSIBLE
from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import World
from tests.support.counts import drawn
from tests.support.local_team import ONE_NODE
from tests.support.network_world import Network
from tests.support.waiting import eventually
from trainyard.cli.cloud import cloud as command

_START = "import sys; from pathlib import Path; from localcloud import control; control.start_cloud(Path(sys.argv[1]))"


def _hidden(*files: str) -> str:
    """Shell text that hides programs, as far as there are any. Two names may be of one file."""
    return "\n".join(f"[ ! -x {file} ] || mount --bind /dev/null {file}" for file in files)


# Each hides one thing that the machine has, by a namespace without it.
LACKS = {
    "namespaces": ("echo 0 >/proc/sys/user/max_net_namespaces", "refuses namespaces"),
    "nft": (_hidden("/usr/sbin/nft", "/sbin/nft"), "nft not found; install the packages"),
}
# As LACKS, for isolation other than rules.
NO_FILTERS = (
    f'set -- {sys.executable} -m tests.support.without_seccomp "$@"',
    "its kernel has no filters of system calls (seccomp, Linux 4.17)",
)
ALL = {**LACKS, "filters": NO_FILTERS}
# As LACKS, for the programs that make networks: the folder in which the cloud looks for them is empty.
NO_PROGRAMS = _hidden("/usr/sbin/nft", "/sbin/nft", "/bin/ip", "/usr/bin/ip", "/sbin/ip", "/usr/sbin/ip")


def _without(lacks: str, *words: str, cache: Path, isolation: str) -> subprocess.CompletedProcess[str]:
    """Runs a command on a machine that lacks something, with its own cache."""
    variables = {**os.environ, VARIABLE: isolation, "XDG_CACHE_HOME": str(cache)}
    return subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", f'{lacks}\nexec "$@"', "sh", *words],
        check=True, timeout=240, cwd=Path(__file__).parents[3], env=variables, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


@contextmanager
def lacking(lack: str, home: Path, isolation: str) -> Iterator[Cloud]:
    """A cloud on a machine that lacks something."""
    try:
        words = (sys.executable, "-c", _START, str(home))
        cache = home.parent / "cache" if lack == "nft" else environments_cache().parents[1]
        _without(ALL[lack][0], *words, cache=cache, isolation=isolation)
        cloud = control.find_running_cloud(home)
        assert cloud is not None
        yield cloud
    finally:
        control.stop_cloud(home)


@pytest.mark.parametrize("lack", ALL)
def test_no_run_starts_without_enforced_rules(lack: str, tmp_path: Path) -> None:
    with lacking(lack, tmp_path / "cloud", REQUIRED) as cloud:
        world = World(Clients(cloud))
        network = Network(world)
        run = network.cluster("tell('it ran')", network.subnet("10.0.1.0/24", [], []), 2)
        ended = world.finished(run)
        assert (ended.lifecycle_state, world.lines(run)) == ("FAILED", [])
        assert re.search("cannot be (enforced|filtered) on this machine", ended.lifecycle_details)
        assert ALL[lack][1] in ended.lifecycle_details
        assert f"--isolation {WHERE_POSSIBLE}" in ended.lifecycle_details
        assert ALL[lack][1] in admin.why_not_enforced(cloud)
        assert "Traceback" not in (cloud.home / "server.log").read_text()


@pytest.mark.parametrize("lack", LACKS)
def test_with_isolation_where_possible_nodes_use_loopback_and_the_reason_is_shown(lack: str, tmp_path: Path) -> None:
    with lacking(lack, tmp_path / "cloud", WHERE_POSSIBLE) as cloud:
        _goes_without(cloud, LACKS[lack][1], has_places=lack == "nft")


def test_with_isolation_where_possible_only_missing_filters_are_left_out(tmp_path: Path) -> None:
    # The calls have invalid arguments, so the kernel refuses them in another way than the filter would.
    script = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall({'x86_64': 304, 'aarch64': 265}[os.uname().machine], -100, None, 0)
tell(errno.errorcode[ctypes.get_errno()], os.environ['HOME'])
"""
    with lacking("filters", tmp_path / "cloud", WHERE_POSSIBLE) as cloud:
        world = World(Clients(cloud))
        network = Network(world)
        run = network.cluster(script, network.subnet("10.0.1.0/24", [], []), 2)
        assert world.finished(run).lifecycle_state == "SUCCEEDED", world.lines(run)
        assert world.lines(run) == ["EFAULT /home/datascience"] * 2
        assert network.evidence(run)["enforced"]
        assert admin.why_not_enforced(cloud) == ""
        log = (cloud.home / "server.log").read_text()
        assert log.count(f"nodes may make every system call: {NO_FILTERS[1]}") == 1


@pytest.mark.parametrize("lack", drawn(list(ALL), 1))
def test_a_cloud_that_may_do_without_isolation_runs_nothing_for_a_user_who_requires_it(
    lack: str, tmp_path: Path
) -> None:
    """`make up` left the cloud, and somebody tries a stranger's stack there, by each door to a run."""
    shutil.copytree(ONE_NODE, tmp_path / "stacks")
    stack = ("local", "--stacks", str(tmp_path / "stacks"), "--local")
    doors = (("up", *stack), ("run", "local", "line", *stack[1:]), ("cloud", "start"), ("cloud", "env"))
    with lacking(lack, tmp_path / "cloud", WHERE_POSSIBLE):
        for door in doors:
            done = subprocess.run(
                [sys.executable, "-P", "-m", "trainyard", *door], capture_output=True, text=True, cwd=tmp_path,
                env={**os.environ, "TRAINYARD_HOME": str(tmp_path), VARIABLE: REQUIRED},
            )  # fmt: skip
            assert (done.returncode, done.stdout) == (1, ""), door
            assert ALL[lack][1] in done.stderr
            assert "was started with `--isolation where-possible`, so it would run the code as you" in done.stderr
            assert re.search(rf"without them: (\S*/)?trainyard {door[0]} ", done.stderr)


@pytest.mark.parametrize("lack", LACKS)
def test_without_rules_nodes_of_separate_runs_in_one_network_can_connect(lack: str, tmp_path: Path) -> None:
    with lacking(lack, tmp_path / "cloud", WHERE_POSSIBLE) as cloud:
        world = World(Clients(cloud))
        network = Network(world)
        subnet = network.subnet("10.0.1.0/24", [], [])
        listens = """
listener = socket.create_server((os.environ['TRAINYARD_NODE_ADDRESS'], 5000))
tell('listens')
for _ in range(2): listener.accept()
"""
        first = network.cluster(listens, subnet, 1)
        eventually(lambda: world.lines(first) == ["listens"])
        others = [network.cluster("reach('127.0.1.2', 5000)", subnet, 1) for _ in range(2)]
        for run in (*others, first):
            assert world.finished(run).lifecycle_state == "SUCCEEDED", world.lines(run)


@pytest.mark.skipif(not shutil.which("apt-get"), reason="only Debian's packages are fetched")
def test_missing_network_programs_are_downloaded_without_root(tmp_path: Path) -> None:
    home = tmp_path / "cloud"
    words = (sys.executable, "-m", "trainyard", "cloud", "start", "--home", str(home))
    try:
        first = _without(NO_PROGRAMS, *words, cache=tmp_path / "cache", isolation=REQUIRED)
        assert "trainyard: fetching iproute2 and nftables, which enforce security rules" in first.stdout
        cloud = control.find_running_cloud(home)
        assert cloud is not None
        assert admin.why_not_enforced(cloud) == ""
        world = World(Clients(cloud))
        network = Network(world)
        run = network.cluster("tell('it ran')", network.subnet("10.0.1.0/24", [], []), 2)
        assert (world.finished(run).lifecycle_state, world.lines(run)) == ("SUCCEEDED", ["it ran"] * 2)
        assert network.evidence(run)["enforced"]
        assert "fetching" not in _without(NO_PROGRAMS, *words, cache=tmp_path / "cache", isolation=REQUIRED).stdout
    finally:
        control.stop_cloud(home)


def test_network_programs_that_cannot_be_downloaded_are_reported_in_one_line(tmp_path: Path) -> None:
    home = tmp_path / "cloud"
    no_lists = f"{NO_PROGRAMS}\nmount -t tmpfs none /etc/apt"
    try:
        words = (sys.executable, "-m", "trainyard", "cloud", "start", "--home", str(home))
        said = _without(no_lists, *words, cache=tmp_path / "cache", isolation=REQUIRED).stdout
        lines = [line for line in said.splitlines() if line.startswith("trainyard:")]
        assert lines[1:] == [
            "trainyard: iproute2 and nftables are not here and cannot be fetched: no mirror of Debian in this machine's"
            " lists of packages"
        ]
        assert (cloud := control.find_running_cloud(home))
        assert admin.why_not_enforced(cloud) == "ip and nft not found; install the packages iproute2 and nftables"
    finally:
        control.stop_cloud(home)


def test_an_invalid_isolation_value_starts_no_cloud(tmp_path: Path) -> None:
    with pytest.raises(control.CloudError, match=f"{VARIABLE} must be required or where-possible, not 'no'"):
        control.start_cloud(tmp_path / "cloud", isolation="no")


def _goes_without(cloud: Cloud, reason: str, has_places: bool) -> None:
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


def test_status_reports_full_isolation(cloud: Cloud) -> None:
    assert admin.why_not_enforced(cloud) == ""
    said = CliRunner().invoke(command, ["status", "--json", "--home", str(cloud.home)])
    assert json.loads(said.output)["rulesEnforced"] is True
    assert json.loads(said.output)["console"] == f"{cloud.endpoint}/console"
    text = CliRunner().invoke(command, ["status", "--home", str(cloud.home)]).output
    assert f"Console: {cloud.endpoint}/console" in text
    assert "AWS: account 123456789012, region us-east-1" in text


def test_a_node_without_its_own_network_cannot_change_the_machines_settings(cloud: Cloud) -> None:
    world = World(Clients(cloud))
    # The test writes the current value, so that nothing changes even if the write succeeds.
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


def test_a_run_without_a_subnet_has_its_own_loopback(cloud: Cloud) -> None:
    world = World(Clients(cloud))
    run = world.run(world.job("import os; print(os.environ['TRAINYARD_NODE_ADDRESS'])"))
    assert world.finished(run).lifecycle_state == "SUCCEEDED"
    assert world.lines(run) == ["127.0.0.1"]
    seen = admin.read_evidence(cloud, run.id)
    assert (seen["enforced"], "names no subnet" in seen["reason"]) == (False, True)
