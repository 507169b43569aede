# SPDX-License-Identifier: Apache-2.0
"""VCN flow logs: records, in OCI's format, of what the firewalls of nodes let through and refused.

The format is that of Oracle's "Details for VCN Flow Logs". A firewall here counts by peer, protocol and port. So a
record stands for all refused packets, or all accepted connections, with the same peer, protocol and port since the last
record. Source ports and bytes are 0.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any

from localcloud.oci.errors import related_not_found
from localcloud.oci.operations import ApiCall
from localcloud.oci.store import StateStore, StoredResource
from localcloud.server.errors import invalid
from localcloud.server.http import Json

# The type of a record.
RECORD = "com.oraclecloud.vcn.flowlogs.DataEvent"
SERVICE_LOG = "SERVICE"
_SERVICE, _SOURCE_TYPE = "flowlogs", "OCISERVICE"
# The category `subnet` is the same, but restricted by a capture filter.
_CATEGORY = "all"
_PROTOCOLS = {"tcp": 6, "udp": 17, "icmp": 1}
# The counts that are recorded already, by flow.
Recorded = dict[tuple[Any, ...], int]


def require_source(call: ApiCall, body: Json) -> Json:
    """Refuses a service log that is not the flow log of an existing subnet."""
    configuration = body.get("configuration") or {}
    source = configuration.get("source")
    if "compartmentId" in configuration:
        raise invalid("the local cloud does not support configuration.compartmentId: a log lies where its group does")
    if body.get("logType") != SERVICE_LOG:
        if source:
            raise invalid("configuration is for logs of the type SERVICE only")
        return body
    if not source:
        raise invalid("configuration.source is required for a log of the type SERVICE")
    chosen = source.get("sourceType"), source.get("service"), source.get("category")
    if chosen != (_SOURCE_TYPE, _SERVICE, _CATEGORY) or source.get("parameters"):
        raise invalid(
            f"the local cloud serves one kind of service log: {_SOURCE_TYPE}, service {_SERVICE}, category {_CATEGORY},"
            " without parameters"
        )
    subnet = call.store.get(str(source.get("resource")))
    if subnet is None or subnet.kind != "subnet" or not subnet.live:
        raise related_not_found(f"resource {source.get('resource')}")
    return body


def keep_source(resource: StoredResource, body: Json) -> Json:
    """An update does not change a log's source: OCI's provider replaces the log for that."""
    kept = resource.body.get("configuration")
    if kept is None and body.get("configuration"):
        raise invalid("configuration is for logs of the type SERVICE only")
    return {**body, "configuration": kept} if kept else body


def subnet_of(log: StoredResource) -> str:
    """The subnet whose flows this log records. Empty for any other log."""
    return str(((log.body.get("configuration") or {}).get("source") or {}).get("resource", ""))


def logs_of_subnet(store: StateStore, subnet: str) -> list[StoredResource]:
    """The flow logs of a subnet that are enabled."""
    return [log for log in store.live("log") if log.state == "ACTIVE" and subnet and subnet_of(log) == subnet]


def new_records(document: Mapping[str, Any], recorded: Recorded, moment: float) -> Iterator[tuple[str, Json]]:
    """The new counts of a run's firewalls since the last records: the VNIC, and the record's data."""
    vnics = {str(node["address"]): str(node["vnic"]) for node in document["nodes"]}
    accepted = [("ACCEPT", row, int(row["connections"])) for row in (*document["flows"], *document.get("free", ()))]
    for action, row, count in (*accepted, *(("REJECT", row, int(row["packets"])) for row in document["dropped"])):
        source, target = str(row["from"]), str(row["to"])
        key = (action, row["direction"], source, target, row["port"], row["protocol"])
        # Two searches at the same time may get their counts in the wrong order.
        more = count - recorded.get(key, 0)
        recorded[key] = max(count, recorded.get(key, 0))
        if more > 0 and not any(ip_address(end).is_link_local for end in (source, target)):
            vnic = vnics.get(target if row["direction"] == "ingress" else source, "")
            yield vnic, _data(action, source, target, row, more, int(moment))


def _data(action: str, source: str, target: str, row: Mapping[str, Any], count: int, second: int) -> Json:
    named = str(row["protocol"]).lower()
    number = _PROTOCOLS.get(named) or int(named)
    return {
        "action": action,
        "bytesOut": 0,
        "destinationAddress": target,
        "destinationPort": row["port"],
        "endTime": second,
        "flowid": uuid.uuid4().hex[:8],
        "packets": count,
        "protocol": number,
        "protocolName": next((name.upper() for name, one in _PROTOCOLS.items() if one == number), str(number)),
        "sourceAddress": source,
        "sourcePort": 0,
        "startTime": second,
        "status": "OK",
        "version": "2",
    }


def oracle_of(store: StateStore, log: StoredResource, vnic: str) -> Json:
    """The part of a record about its VNIC."""
    there = store.get(vnic)
    compartment = there.compartment if there else log.compartment
    return {"vniccompartmentocid": compartment, "vnicocid": vnic, "vnicsubnetocid": subnet_of(log)}
