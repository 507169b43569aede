# SPDX-License-Identifier: Apache-2.0
"""Network namespaces, made as root and as an account without privileges, by the same calls."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from localcloud.environments import network_tools
from localcloud.hosts.site import Site, SiteError, SiteTask
from tests.support.programs import require_program

PROJECT = Path(__file__).parents[3]
# It may only read files, because the interpreter may be in a home that other accounts cannot enter.
_NOBODY = (
    "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all,+dac_read_search",
    "--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search",
)  # fmt: skip
_SCRIPT = """
import json, os, socket, sys
from localcloud.hosts.assignment import Interface, NetworkReach, Subnet
from localcloud.hosts.lan import Lan, LanMember
from localcloud.hosts.site import SiteTask
subnet = Subnet('subnet', 'vcn', '10.0.1.1', '02:00:17:00:01:01', 24)
closed = lambda: NetworkReach((), ())
interfaces = [Interface(f'vnic{n}', f'10.0.1.{n}', f'02:00:17:00:01:0{n}', closed) for n in (2, 3)]
lan = Lan.start(['198.51.100.1', '198.51.100.2'])
lan.prepare()
members = [LanMember(rank, '', interface, subnet) for rank, interface in enumerate(interfaces)]
lan.plan(members)
lan.join(subnet, members)
listener = lan.site.listen('198.51.100.1', 443)
print(os.geteuid(), listener.getsockname(), listener.proto == socket.IPPROTO_TCP)
for said in lan.read_firewalls(members): print('trainyard' in said)
run = lan.site.run
def router(): return json.loads(run([SiteTask([lan.ip, '-j', 'link', 'show', 'subnet0'], '')])[0])[0]['address']
print(router())
for member in members:
    lan.leave([member])
    print(router())
lan.close()
"""
# The address of the router of 10.0.1.0/24 stays the same while nodes come and go.
_ROUTER = "02:00:17:00:01:01"


@pytest.mark.parametrize("account", [(), _NOBODY] if os.geteuid() == 0 else [()], ids=lambda words: len(words))
def test_a_site_works_for_every_account(account: tuple[str, ...]) -> None:
    for program in network_tools.PACKAGES if account else ():
        require_program(program)  # nobody has no cache
    cache = {name: value for name, value in os.environ.items() if name == "XDG_CACHE_HOME" and not account}
    done = subprocess.run(
        [*account, sys.executable, "-c", _SCRIPT], capture_output=True, text=True, timeout=120, cwd=PROJECT,
        env={"PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.environ["PATH"], **cache},
    )  # fmt: skip
    uid = 65534 if account else os.geteuid()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"{uid} ('198.51.100.1', 443) True", "True", "True", *[_ROUTER] * 3]


def test_the_output_of_a_failed_program_is_in_the_error() -> None:
    site = Site()
    try:
        site.prepare()
        with pytest.raises(SiteError, match=r"ls: .*no-such-file"):
            site.run([SiteTask(["/bin/ls", "/no-such-file"], "")])
        assert site.run([SiteTask(["/bin/cat"], "still there\n")]) == ["still there\n"]
        with pytest.raises(SiteError, match="no-such-program"):
            site.run([SiteTask(["/no-such-program"], "")])
        with site.listen("127.0.0.1", 80), pytest.raises(SiteError, match="in use"):
            site.listen("127.0.0.1", 80)
        assert site.alive
    finally:
        site.close()
    assert not site.alive
    with pytest.raises(SiteError, match="is gone"):
        site.run([])


def test_a_site_can_have_more_namespaces_than_one_message_carries() -> None:
    site = Site()
    try:
        site.prepare()
        found = site.open(300)
        assert len({os.readlink(f"/proc/self/fd/{each.file}") for each in found}) == 300
        site.release(found)
    finally:
        site.close()
