# SPDX-License-Identifier: Apache-2.0
"""A port is closed in the security list of a stack that is up: `trainyard run --follow` names nodes, port and rule, and
so does `trainyard runs why`. It names the rank and the line of an exception and of a deadlock, too."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import oci
import pytest

from localcloud import admin
from tests.support.local_team import ROOT
from tests.support.try_world import PAIR, SCRIPT, TryTeam, jobs, try_team

pytestmark = pytest.mark.engine

# Two nodes with the ports of DDP. No framework is needed to find that they are closed.
_DDP_PORTS = f"""{PAIR}
[[ports]]
label = "rendezvous"
listens = ["main"]
reached_from = ["worker"]
default = 29400
why = "the store where the ranks meet"
[[ports]]
label = "data"
listens = ["main", "worker"]
reached_from = ["main", "worker"]
default = "29500-29563"
why = "gloo connects here"
"""
# With `--raise`, node 1 fails. With `--deadlock`, node 0 waits for node 1, which is elsewhere, and its timeout ends it.
_WRONG = """
import socket, threading
def evaluate():
    threading.Event().wait(600)
def read_batch():
    raise ValueError("no batch")
def all_reduce(peer):
    peer.settimeout(5)
    try:
        peer.recv(1)
    except TimeoutError:
        raise RuntimeError("[pair.cc:525] Timed out waiting 5000ms for recv operation to complete")
def meet():
    if node == "0":
        return socket.create_server(("", 29400)).accept()[0]
    while True:
        try:
            return socket.create_connection((os.environ["PEERS"].partition(",")[0], 29400))
        except OSError:
            threading.Event().wait(0.1)
if "--raise" in sys.argv:
    read_batch() if node == "1" else evaluate()
if "--deadlock" in sys.argv:
    peer = meet()
    evaluate() if node == "1" else all_reduce(peer)
"""
_RANGES = {"29400": (29400, 29400), "29500-29563": (29500, 29563)}
# From when all nodes are there: ten seconds without an answer, and what it takes to tell it to the person who follows.
_LONGEST = 15.0


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TryTeam]:
    root = tmp_path_factory.mktemp("closed")
    pair = jobs()["pair"]
    del pair["runs"]
    with try_team(root, {"ddp": pair}) as one:
        (one.stacks / "local" / "pair.toml").write_text(_DDP_PORTS)
        (one.stacks / "local" / "train.py").write_text(SCRIPT + _WRONG)
        one.trainyard("up", "local")
        reason = admin.why_not_enforced(one.cloud)
        if reason:
            pytest.skip(f"no rule is enforced here: {reason}")
        yield one


def _close(team: TryTeam, ports: tuple[int, int]) -> tuple[str, Any]:
    """Removes the rules for a range, as somebody with OCI's SDK. Returns the list and its rules before."""
    network = team.clients.network
    (rules,) = [
        one for one in network.list_security_lists(team.cloud.compartment).data if one.display_name.endswith("-rules")
    ]
    before = oci.core.models.UpdateSecurityListDetails(
        ingress_security_rules=rules.ingress_security_rules, egress_security_rules=rules.egress_security_rules
    )

    def kept(all_rules: list[Any]) -> list[Any]:
        ranges = [one.tcp_options and one.tcp_options.destination_port_range for one in all_rules]
        return [one for one, of in zip(all_rules, ranges, strict=True) if not of or (of.min, of.max) != ports]

    network.update_security_list(
        rules.id,
        oci.core.models.UpdateSecurityListDetails(
            ingress_security_rules=kept(rules.ingress_security_rules),
            egress_security_rules=kept(rules.egress_security_rules),
        ),
    )
    return rules.id, before


@pytest.mark.parametrize(
    ("closed", "who", "what"),
    [
        ("29400", "worker-0 cannot reach main-0", "rendezvous: the store where the ranks meet"),
        ("29500-29563", "main-0 and worker-0 cannot reach one another", "data: gloo connects here"),
    ],
)
def test_a_closed_port_is_on_the_followers_screen_with_the_rule_to_add(
    team: TryTeam, closed: str, who: str, what: str
) -> None:
    list_id, before = _close(team, _RANGES[closed])
    try:
        following = subprocess.Popen(
            team.words("ddp", "--follow", "--name", f"closed-{closed}"), cwd=ROOT, env=team.environment(),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        with following:
            assert following.stdout is not None
            met, told, screen = 0.0, 0.0, []
            for line in following.stdout:
                screen.append(line)
                met = met or time.monotonic() * ("all 2 nodes are there" in line)
                told = told or time.monotonic() * (f"{who} on TCP {closed} ({what}" in line)
        whole = "".join(screen)
        assert following.returncode, whole
        assert met, whole
        assert told, whole
        assert told - met < _LONGEST, whole
        assert f"Add to security list demo-local-rules of subnet 10.20.0.0/24: ingress and egress TCP {closed}" in whole
        assert "args [" not in whole, "no command has started"
        assert whole.count(f"{who} on TCP {closed}") >= 2, whole
        seen = team.run("runs", "--local", "local", f"ddp/try-closed-{closed}").stdout
        assert f"{who} on TCP {closed}" in seen
        assert "failed first" not in seen
        verdict = _why(team, f"try-closed-{closed}")
        found = (verdict["kind"], verdict["certainty"], verdict["ranks"])
        assert found == ("closed port", "certain", [0, 1]), "the firewalls agree with the launchers"
        assert f"ingress and egress TCP {closed}" in verdict["rule"]
    finally:
        team.clients.network.update_security_list(list_id, before)


def _why(team: TryTeam, name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(
        team.run("runs", "why", "--local", "local", f"ddp/{name}", "--format", "json").stdout
    )
    return read


def _line_of(words: str) -> str:
    return f"train.py:{(SCRIPT + _WRONG).partition(words)[0].count(chr(10)) + 1}"


@pytest.mark.parametrize(
    ("name", "kind", "words", "line"),
    [
        ("raise", "exception", "ValueError: no batch", "raise ValueError"),
        ("deadlock", "deadlock", "rank 1 is in", "threading.Event().wait(600)"),
    ],
)
def test_why_names_the_rank_and_the_line_of_the_script(
    team: TryTeam, name: str, kind: str, words: str, line: str
) -> None:
    assert team.try_("ddp", "--follow", "--name", name, "--", f"--{name}").returncode == 1
    verdict = _why(team, f"try-{name}")
    assert (verdict["kind"], verdict["certainty"], verdict["ranks"]) == (kind, "certain", [1]), verdict
    assert verdict["line"] == _line_of(line), verdict
    shown = team.run("runs", "why", "--local", "local", f"ddp/try-{name}").stdout
    assert words in shown.splitlines()[1], shown
    assert "\x1b" not in shown
    assert "evidence, the strongest first:" in shown
