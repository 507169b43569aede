# SPDX-License-Identifier: Apache-2.0
"""The first of the README's commands on a machine that has nothing but Debian, Python, make and git."""

import re
import subprocess

import pytest

from tests.support.bare_machine import BareMachine, without

TRAINED = re.compile(r"\[0\] done: y = (2\.9|3\.0)\d x .* on 2 workers")
UNENFORCED = re.compile(r"^  rules    not enforced .*$", re.MULTILINE)
FETCHED = "fetching iproute2 and nftables, which enforce security rules"
TOOLS = ("nftables", "iproute2")
# Debian 13, whatever this machine's release is.
TRIXIE = "trixie"
KINDS = {
    "root": BareMachine(user="root"),
    "nftables": BareMachine(packages=TOOLS),
    "nftables, root": BareMachine(packages=TOOLS, user="root"),
    "cold": BareMachine(cold=True),
    "Debian 13": BareMachine(release=TRIXIE),
}


def require_training(up: subprocess.CompletedProcess[str]) -> str:
    assert up.returncode == 0, up.stdout
    assert "run      line/base: SUCCEEDED" in up.stdout, up.stdout
    assert TRAINED.search(up.stdout), up.stdout
    return up.stdout


def test_make_up_trains_under_its_rules_as_a_user() -> None:
    words = require_training(BareMachine().run("make", "up"))
    assert FETCHED in words
    assert not UNENFORCED.search(words)


@pytest.mark.torture
@pytest.mark.parametrize("machine", KINDS.values(), ids=KINDS)
def test_make_up_trains_on_every_kind_of_machine(machine: BareMachine) -> None:
    words = require_training(machine.run("make", "up"))
    assert (FETCHED in words) == (machine.packages == ())
    assert not UNENFORCED.search(words)


@pytest.mark.torture
def test_make_up_trains_without_rules_if_they_cannot_be_enforced() -> None:
    words = require_training(BareMachine(user="root").run(*without("make up", "/etc/apt")))
    (line,) = UNENFORCED.findall(words)
    assert "ip and nft not found; install the packages iproute2 and nftables" in line
