# SPDX-License-Identifier: Apache-2.0
"""A port is closed in the security list of a stack that is up: `trainyard run --follow` names nodes, port and rule."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from typing import Any

import oci
import pytest

from localcloud import admin
from tests.support.local_team import ROOT
from tests.support.try_world import PAIR, TryTeam, jobs, try_team

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
_RANGES = {"29400": (29400, 29400), "29500-29563": (29500, 29563)}
# Ten seconds without an answer, and what a busy machine adds.
_LONGEST = 20.0


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TryTeam]:
    root = tmp_path_factory.mktemp("closed")
    pair = jobs()["pair"]
    del pair["runs"]
    with try_team(root, {"ddp": pair}) as one:
        (one.stacks / "local" / "pair.toml").write_text(_DDP_PORTS)
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
    finally:
        team.clients.network.update_security_list(list_id, before)
