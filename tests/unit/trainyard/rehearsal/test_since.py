# SPDX-License-Identifier: Apache-2.0
"""A host with several runs: the counts of each, as differences of running counters."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from components.platform.rehearsal import Artifact
from components.platform.traffic import RehearsedNode, read_traffic
from trainyard.rehearsal.run_evidence import counts_since, mark_local_only

MAIN, WORKER, STORE = "10.60.0.2", "10.60.0.3", "198.51.100.2"
NODE = RehearsedNode("sum", "base", 0, "main", "main-0", MAIN)


def document(connections: int, carried: int, members: list[str], more: tuple[Any, ...] = ()) -> dict[str, Any]:
    flow = {"direction": "ingress", "from": WORKER, "to": MAIN, "port": 7400, "protocol": "tcp"}
    rule = {
        "list": "nodes", "direction": "ingress", "index": 0, "description": "", "protocol": "all", "peer": "nodes",
        "called": "the nodes", "addresses": members, "ports": None, "node": 0, "packets": 0,
        "connections": connections,
    }  # fmt: skip
    return {
        "enforced": True, "reason": "", "rules": [rule], "flows": [{**flow, "connections": connections}, *more],
        "nodes": [{"rank": 0, "address": MAIN, "carried": {WORKER: carried}, "processorSeconds": None}],
        "dropped": [{**flow, "port": 9, "packets": 2}],
    }  # fmt: skip


def test_what_was_counted_before_is_left_out() -> None:
    new = {"direction": "egress", "from": MAIN, "to": STORE, "port": 443, "protocol": "tcp", "connections": 1}
    seen = counts_since(document(5, 900, [WORKER], (new,)), document(3, 400, [WORKER]))
    assert [row["connections"] for row in seen["flows"]] == [2, 1]
    assert seen["rules"][0]["connections"] == 2
    assert seen["nodes"][0]["carried"] == {WORKER: 500}
    assert seen["dropped"] == []


def test_first_counts_and_counts_after_a_restart_are_complete() -> None:
    first = document(3, 400, [WORKER])
    assert counts_since(first, None) == first
    again = counts_since(document(1, 100, [WORKER]), first)
    assert again["flows"][0]["connections"] == 1
    assert again["nodes"][0]["carried"] == {WORKER: 100}


def test_a_peer_that_is_a_name_stands_for_its_addresses_alone() -> None:
    strange = {"direction": "ingress", "from": STORE, "to": MAIN, "port": 7400, "protocol": "tcp", "connections": 1}
    traffic = read_traffic([(document(3, 400, [], (strange,)), [NODE]), (document(1, 0, [WORKER]), [NODE])])
    (rule,) = traffic.rules
    assert rule.title == "ingress from the nodes, every protocol"
    assert set(rule.addresses or ()) == {WORKER}, "members that came later count, too"
    assert [flow.source for flow in traffic.failing(traffic.rules)] == [STORE]


def test_files_that_only_the_local_cloud_keeps_are_found_by_rank() -> None:
    record = {"files": 1, "bytes": 9, "largest": [{"name": "a/s.pt", "bytes": 9, "files": 1, "why": "large"}]}
    nodes = [
        SimpleNamespace(rank=0, launcher_status={}),
        SimpleNamespace(rank=1, launcher_status={"localOnly": record}),
    ]
    names = ["workdir/a/s.pt", "rank-1/workdir/a/s.pt", "rank-1/workdir/other", "s.pt"]
    marked = mark_local_only([Artifact(name, 9) for name in names], cast(Any, SimpleNamespace(nodes=nodes)))
    assert [one.name for one in marked if one.local_only] == ["rank-1/workdir/a/s.pt"]
