# SPDX-License-Identifier: Apache-2.0
"""The rows of a run's drawing, from the evidence of firewalls."""

from __future__ import annotations

from typing import Any

import pytest

from components.platform.runs import NodeRun
from localcloud.console import connections as drawing
from localcloud.console.platform import RunNode, TrainingRun
from localcloud.oci.console.platform import OciConsole

SUBNET, SERVICES = "10.0.1.0/24", "all-iad-services-in-oracle-services-network"


def run_of(*roles: str) -> TrainingRun:
    nodes = tuple(
        RunNode(rank, role, NodeRun(f"{role}-{rank}", f"run{rank}", "IN_PROGRESS"), machine=f"run{rank}")
        for rank, role in enumerate(roles)
    )
    return TrainingRun("run0", "s", "j/r", 1, 0.0, nodes, ())


def connections(run: TrainingRun, documents: Any) -> Any:
    return drawing.draw_connections(run, documents, OciConsole.places)


def address(rank: int) -> str:
    return f"10.0.1.{rank + 2}"


def rule(direction: str, index: int, ports: Any, peer: str = SUBNET, used: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "list": "l", "direction": direction, "index": index, "description": f"rule {index}", "protocol": "6",
        "peer": peer, "ports": ports, "node": 0, "packets": 0, "connections": used, **more,
    }  # fmt: skip


def flow(direction: str, source: str, target: str, port: int, **counted: int) -> dict[str, Any]:
    return {"direction": direction, "from": source, "to": target, "port": port, "protocol": "tcp", **counted}


def evidence(rank: int, rules: Any = (), flows: Any = (), dropped: Any = (), reason: str = "") -> dict[str, Any]:
    nodes = [{"rank": 0, "group": "", "address": address(rank), "vnic": "v"}]
    return {
        "run": f"run{rank}", "enforced": not reason, "reason": reason, "nodes": nodes, "rules": list(rules),
        "flows": list(flows), "dropped": list(dropped),
    }  # fmt: skip


def test_used_unused_and_dropped_by_role() -> None:
    rules = [rule("ingress", 0, [5000, 5010], used=2), rule("ingress", 1, [22, 22]), rule("egress", 0, None, used=2)]
    seen = connections(
        run_of("main", "worker", "worker"),
        {
            "run0": evidence(0, rules, [
                flow("ingress", address(1), address(0), 5000, connections=1),
                flow("ingress", address(2), address(0), 5001, connections=1),
            ]),
            "run1": evidence(1, rules, [flow("egress", address(1), address(0), 5000, connections=1)]),
            "run2": evidence(2, rules, [flow("egress", address(2), "198.51.100.2", 443, connections=4)], [
                flow("egress", address(2), "192.0.2.9", 80, packets=3),
                flow("ingress", address(0), address(2), 81, packets=2),
            ]),
        },
    )  # fmt: skip
    rows = [(row["kind"], row["from"], row["to"], row["what"], row["count"]) for row in seen["rows"]]
    assert rows == [
        ("dropped", ["worker"], ["192.0.2.9"], "tcp 80", 3),
        ("dropped", ["main"], ["worker"], "tcp 81", 2),
        ("used", ["worker"], ["Object Storage"], "tcp 443", 4),
        ("used", ["worker"], ["main"], "tcp 5000, tcp 5001", 2),
        ("allowed", ["main", "worker"], ["main", "worker"], "tcp 22", 0),
    ]
    assert seen["rows"][3]["why"] == "rule 0"
    assert (seen["connections"], seen["dropped"], seen["rules"]) == (6, 5, {"used": 2, "unused": 1})
    assert [[node["dropped"] for node in role["nodes"]] for role in seen["roles"]] == [[2], [0, 3]]


def test_late_packets_of_a_nodes_own_connection_are_not_drops() -> None:
    flows = [flow("egress", address(0), "198.51.100.2", 443, connections=1)]
    dropped = [flow("ingress", "198.51.100.2", address(0), 40000, packets=1)]
    seen = connections(run_of("main"), {"run0": evidence(0, flows=flows, dropped=dropped)})
    assert (seen["dropped"], [row["kind"] for row in seen["rows"]]) == (0, ["used"])


def test_a_rule_to_services_has_their_names() -> None:
    seen = connections(run_of("main"), {"run0": evidence(0, [rule("egress", 0, [443, 443], SERVICES)])})
    (row,) = seen["rows"]
    assert (row["from"], row["to"]) == (["main"], ["OCI services", "Object Storage"])


def test_a_group_is_drawn_as_its_members() -> None:
    own = rule("ingress", 0, [5000, 5000], "sg-1", addresses=[address(0), address(1), "192.0.2.1"])
    free = [
        flow("ingress", address(1), address(0), 7000, connections=2),
        flow("egress", address(0), "192.0.2.1", 443, connections=9),
    ]
    seen = connections(
        run_of("main", "worker"), {"run0": evidence(0, [own]) | {"free": free}, "run1": evidence(1, [own])}
    )
    rows = [(row["kind"], row["from"], row["to"], row["what"], row["count"]) for row in seen["rows"]]
    assert rows == [
        ("used", ["worker"], ["main"], "tcp 7000", 2),
        ("allowed", ["main", "worker"], ["main", "worker"], "tcp 5000", 0),
    ]


@pytest.mark.parametrize("peer", ["ocid1.networksecuritygroup.oc1.iad.x", "fd00::/8", "0.0.0.0/0"])
def test_any_peer_of_a_rule_is_drawn(peer: str) -> None:
    seen = connections(run_of("main"), {"run0": evidence(0, [rule("ingress", 0, None, peer)])})
    (row,) = seen["rows"]
    assert row["to"] == ["main"]


def test_the_size_of_the_drawing_is_limited() -> None:
    roles = [f"{'r' * 100}{number}" for number in range(64)]
    documents = {
        f"run{rank}": evidence(
            rank,
            [rule("ingress", index, [index, index]) for index in range(400)],
            dropped=[flow("egress", address(rank), f"192.0.2.{index}", index, packets=1) for index in range(200)],
        )
        for rank in range(64)
    }
    seen = connections(run_of(*roles), documents)
    assert len(seen["roles"]) == 9
    assert len(seen["rows"]) == 60
    assert seen["left"] > 0
    names = {name for row in seen["rows"] for name in (*row["from"], *row["to"])}
    assert len(names) <= 9 + 7


def test_a_run_without_machines_has_a_note_of_its_own() -> None:
    seen = connections(run_of("main"), {})
    assert (seen["reason"], seen["note"][:23]) == ("", "No machine of the run i")


def test_the_reason_for_missing_enforcement_is_shown() -> None:
    assert connections(run_of("main"), {"run0": evidence(0, reason="no namespaces")})["reason"] == "no namespaces"
