# SPDX-License-Identifier: Apache-2.0
"""Records of flow logs, from the counts of firewalls."""

from __future__ import annotations

from typing import Any

from localcloud.oci.services.logs import RecordedFlows, new_flow_records

# The fields of a record's data, as Oracle's "Details for VCN Flow Logs" lists them.
FIELDS = {
    "action", "bytesOut", "destinationAddress", "destinationPort", "endTime", "flowid", "packets", "protocol",
    "protocolName", "sourceAddress", "sourcePort", "startTime", "status", "version",
}  # fmt: skip


def flow(direction: str, source: str, target: str, **counted: int) -> dict[str, Any]:
    return {"direction": direction, "from": source, "to": target, "port": 29500, "protocol": "tcp", **counted}


def document(refused: int, accepted: int = 0) -> dict[str, Any]:
    return {
        "nodes": [{"address": "10.0.0.2", "vnic": "ocid1.vnic.a"}, {"address": "10.0.0.3", "vnic": "ocid1.vnic.b"}],
        "flows": [flow("egress", "10.0.0.3", "10.0.0.2", connections=accepted)],
        "free": [flow("egress", "10.0.0.3", "169.254.169.254", connections=4)],
        "dropped": [flow("ingress", "10.0.0.3", "10.0.0.2", packets=refused)],
    }


def records_of(seen: dict[str, Any], recorded: RecordedFlows) -> list[tuple[str, str, int]]:
    return [(vnic, data["action"], data["packets"]) for vnic, data in new_flow_records(seen, recorded, 1_000.5)]


def test_a_record_has_the_documented_fields_and_its_vnic() -> None:
    (accepted, (vnic, refused)) = new_flow_records(document(3, 1), {}, 1_000.5)
    assert accepted[0] == "ocid1.vnic.b", "the sender let it out"
    assert vnic == "ocid1.vnic.a", "the receiver refused it"
    assert set(refused) == FIELDS
    assert (refused["action"], refused["packets"], refused["protocol"], refused["protocolName"]) == (
        "REJECT", 3, 6, "TCP",
    )  # fmt: skip
    assert (refused["sourceAddress"], refused["destinationAddress"], refused["destinationPort"]) == (
        "10.0.0.3", "10.0.0.2", 29500,
    )  # fmt: skip
    assert refused["startTime"] == 1_000


def test_packets_are_recorded_once_except_link_local_ones() -> None:
    recorded: RecordedFlows = {}
    assert records_of(document(3), recorded) == [("ocid1.vnic.a", "REJECT", 3)]
    assert records_of(document(5), recorded) == [("ocid1.vnic.a", "REJECT", 2)]
    assert records_of(document(4), recorded) == [], "an answer that came late"
    assert records_of(document(6), recorded) == [("ocid1.vnic.a", "REJECT", 1)]
