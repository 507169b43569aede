# SPDX-License-Identifier: Apache-2.0
"""Connections of a run, from a flow log. tests/frameworks has a whole log, through Oracle's SDK."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import oci
import pytest

from components.oci.client.flow_logs import FlowWitness
from components.platform.calls import call_of
from components.platform.runs import NodeRun
from components.platform.status import NodeStatus, RunStatus
from trainyard.cli.runs_watch import Screen
from trainyard.runs.run_looks import ProgressHistory

BEGAN = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
NAMED = {"group": "ocid1.loggroup.a", "log": "ocid1.log.a"}


def run(*addresses: str, finished: str | None = None) -> RunStatus:
    state = "FAILED" if finished else "IN_PROGRESS"
    nodes = tuple(
        NodeStatus(
            rank,
            NodeRun(f"worker-{rank}", f"run{rank}", state, finished_at=finished),
            "worker", "ocid1.compartment.c/ocid1.loggroup.own/ocid1.log.own", {"address": address},
        )
        for rank, address in enumerate(addresses)
    )  # fmt: skip
    return RunStatus("s", "j", "r", 1, BEGAN, nodes)


def record(source: str, target: str, seconds: float = 5, port: int = 29500, packets: int = 2) -> dict[str, Any]:
    """As OCI writes them."""
    start = int(BEGAN.timestamp() + seconds)
    return {
        "action": "REJECT", "bytesOut": 120, "destinationAddress": target, "destinationPort": port,
        "endTime": start + 1, "flowid": "75d72a74", "packets": packets, "protocol": 6, "protocolName": "TCP",
        "sourceAddress": source, "sourcePort": 60830, "startTime": start, "status": "OK", "version": "2",
    }  # fmt: skip


def flow_log(name: str, subnet: str = "ocid1.subnet.other") -> Any:
    return SimpleNamespace(
        id=f"ocid1.log.{name}", compartment_id="ocid1.compartment.c", lifecycle_state="ACTIVE",
        configuration=SimpleNamespace(source=SimpleNamespace(resource=subnet)),
    )  # fmt: skip


class Tenancy:
    """The calls that a reader makes, and their answers."""

    def __init__(self, *refused: Mapping[str, Any], accepted: str = "", log: bool = True) -> None:
        self.queries: list[str] = []
        self._refused, self._accepted, self._log = refused, accepted, log

    def client(self, name: str) -> Any:
        return self

    def get_log(self, group: str, log: str) -> Any:
        return SimpleNamespace(data=SimpleNamespace(id=log, compartment_id="ocid1.compartment.networks"))

    def list_logs(self, group: str, **chosen: str) -> Any:
        assert chosen == {"log_type": "SERVICE", "source_service": "flowlogs"}
        return SimpleNamespace(data=[flow_log("b"), flow_log("f", "ocid1.subnet.a")] if self._log else [])

    def get_job_run(self, run: str) -> Any:
        assert self._log, "nobody asks where no flow log is"
        return SimpleNamespace(data=SimpleNamespace(job_id="ocid1.job.a"))

    def get_job(self, job: str) -> Any:
        network = SimpleNamespace(subnet_id="ocid1.subnet.a")
        layout = SimpleNamespace(job_network_configuration=network)
        return SimpleNamespace(
            data=SimpleNamespace(job_node_configuration_details=layout, job_infrastructure_configuration_details=None)
        )

    def search_logs(self, details: Any, **options: Any) -> Any:
        self.queries.append(details.search_query)
        wanted = "REJECT" if "'REJECT'" in details.search_query else "ACCEPT"
        found = self._refused if wanted == "REJECT" else [{}] if self._accepted in details.search_query else []
        results = [SimpleNamespace(data={"logContent": {"data": one}}) for one in found]
        return SimpleNamespace(data=SimpleNamespace(results=results), headers={})


def told(tenancy: Any, of: RunStatus, named: Mapping[str, str] | None = None) -> Any:
    seen = FlowWitness(tenancy, call_of("runs", lambda line: None), named)(of)
    return None if seen is None else [(one.pair, one.packets, one.missing) for one in seen.dropped]


def test_allowed_by_the_sender_means_refused_by_the_receiver() -> None:
    both = record("10.0.0.2", "10.0.0.3"), record("10.0.0.2", "10.0.0.3", packets=1), record("10.0.0.3", "10.9.0.1")
    tenancy = Tenancy(*both, accepted="data.sourceAddress = '10.0.0.2'")
    assert told(tenancy, run("10.0.0.2", "10.0.0.3")) == [
        ("worker-0 -> worker-1 tcp 29500", 3, "no ingress rule of worker-1 lets it through"),
        (
            "worker-1 -> outside (10.9.0.1) tcp 29500", 2,
            "no egress rule of worker-1, or no ingress rule of outside (10.9.0.1), lets it through",
        ),
    ]  # fmt: skip
    assert tenancy.queries[0].startswith('search "ocid1.compartment.c/ocid1.loggroup.own/ocid1.log.f" | where ')


def test_packets_of_others_and_after_the_end_are_ignored() -> None:
    late, other = record("10.0.0.2", "10.0.0.3", 400), record("10.0.0.9", "10.0.0.3")
    assert told(Tenancy(late, other), run("10.0.0.2", "10.0.0.3", finished="2026-05-01T12:05:00Z")) == []
    assert told(Tenancy(late), run("10.0.0.2", "10.0.0.3")), "while the run goes on it is"


@pytest.mark.parametrize("addresses", [(), ("' or source = 'x", "10.0.0.3 | limit 1"), ("",)])
def test_without_an_address_nothing_is_asked(addresses: tuple[str, ...]) -> None:
    tenancy = Tenancy(record("10.0.0.2", "10.0.0.3"))
    assert told(tenancy, run(*(addresses or ("x",)))) is None
    assert not tenancy.queries


def test_without_a_flow_log_dropped_packets_are_unknown() -> None:
    assert told(Tenancy(log=False), run("10.0.0.2")) is None


def test_an_existing_flow_log_is_read_in_its_compartment() -> None:
    tenancy = Tenancy(log=False)
    assert told(tenancy, run("10.0.0.2"), NAMED) == []
    assert '"ocid1.compartment.networks/ocid1.loggroup.a/ocid1.log.a"' in tenancy.queries[0]


def test_a_missing_permission_is_reported_once() -> None:
    said: list[str] = []

    def refuse(*_: Any, **__: Any) -> Any:
        raise oci.exceptions.ServiceError(404, "NotAuthorizedOrNotFound", {}, "no")

    tenancy = Tenancy()
    tenancy.list_logs = refuse  # type: ignore[method-assign]
    for expected in (False, True):
        witness = FlowWitness(tenancy, call_of("runs", said.append), expected=expected)  # type: ignore[arg-type]
        assert [witness(run("10.0.0.2")), witness(run("10.0.0.2"))] == [None, None]
        assert len(said) == expected
    assert "dropped packets are not shown" in said[0]


def test_the_screen_says_how_old_the_flow_log_is() -> None:
    seen = FlowWitness(Tenancy(record("10.0.0.2", "10.0.0.3")), call_of("runs", print))(run("10.0.0.2"))  # type: ignore[arg-type]
    assert seen is not None
    screen = Screen(ProgressHistory(lambda run: {}), is_terminal=False)
    shown = RunStatus("s", "j", "r", 1, BEGAN, run("10.0.0.2").nodes, seen)
    assert screen._connections(shown) == "  2 packets dropped, by the subnet's flow log of some minutes ago"
