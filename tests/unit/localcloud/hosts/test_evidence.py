# SPDX-License-Identifier: Apache-2.0
"""What the firewall counted, read from what nft prints."""

from __future__ import annotations

import json

import pytest

from localcloud.hosts.evidence import NodeEvidence, build_evidence


@pytest.mark.parametrize(("printed", "called"), [("tcp", "tcp"), (6, "tcp"), (17, "udp"), (1, "icmp"), (132, "132")])
def test_protocols_have_names_without_a_system_list(printed: object, called: str) -> None:
    element = {"elem": {"val": {"concat": ["10.0.0.2", printed, 5005]}, "counter": {"packets": 3, "bytes": 180}}}
    counters = json.dumps({"nftables": [{"set": {"name": "dropped_ingress", "elem": [element]}}]})
    (drop,) = build_evidence("run", "", [NodeEvidence(0, "main", "10.0.0.1", "vnic", counters=counters)])["dropped"]
    assert (drop["protocol"], drop["port"], drop["packets"]) == (called, 5005, 3)
