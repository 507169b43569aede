# SPDX-License-Identifier: Apache-2.0
"""Packets of a run that security rules refused, from the flow log of its subnet. OCI writes it some minutes late.

A record has addresses, not nodes. Each launcher writes its own address into its status.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import ip_address
from typing import Any

from components.oci.client import logs
from components.oci.client.calls import call_oci
from components.oci.client.session import Session
from components.platform.calls import Call, ProviderError
from components.platform.status import ConnectionsSeen, RunStatus
from components.platform.traffic import DroppedResult
from components.values.protocols import protocol_name

# OCI collects records for a minute, and delivers them once a minute.
_WINDOW = timedelta(minutes=1)
# Limits of records and connections per look. A subnet with more refused packets has another problem.
_MOST_RECORDS, _MOST_SIDES = 5_000, 20


@dataclass(frozen=True, slots=True)
class Refused:
    """Packets from a node that some rule refused."""

    source: str
    target: str
    port: int
    protocol: str


@dataclass
class FlowWitness:
    """Reads the flow log of a run's subnet. `named`: group and log of a flow log in the stack file. `expected`: whether
    the file has a flow log at all. If not, it is no error that the log group may not be listed."""

    session: Session
    call: Call
    named: Mapping[str, str] | None = None
    expected: bool = False
    _cached: dict[str, tuple[float, ConnectionsSeen | None]] = field(default_factory=dict)
    _logs: dict[str, list[Any]] = field(default_factory=dict)
    _subnets: dict[str, str] = field(default_factory=dict)
    _warned: bool = False

    def __call__(self, run: RunStatus) -> ConnectionsSeen | None:
        """The refused packets. None if no flow log records the run's subnet, or it may not be read."""
        first, now = run.nodes[0].run.id, time.monotonic()
        read_at, known = self._cached.get(first, (-_WINDOW.total_seconds(), None))
        if now - read_at < _WINDOW.total_seconds():
            return known
        try:
            known = self._ask(run)
        except ProviderError as error:
            if self.expected and not self._warned:
                self.call.report.warning(f"dropped packets are not shown: {error.cause}")
            self._warned, known = True, None
        self._cached[first] = now, known
        return known

    def _ask(self, run: RunStatus) -> ConnectionsSeen | None:
        names = {address: node.run.name for node in run.nodes if (address := _address_of_node(node.launcher_status))}
        place = self._place(run) if names else None
        if place is None:
            return None
        # Later runs get the same addresses, so records after the end of this one do not count.
        ends = [node.run.finished_at for node in run.nodes]
        last = datetime.max.replace(tzinfo=UTC)
        if run.over and None not in ends:
            last = max(datetime.fromisoformat(str(end)) for end in ends) + _WINDOW
        counted: Counter[Refused] = Counter()
        for record in self._records(place, "data.action = 'REJECT'", run.created - _WINDOW, _MOST_RECORDS):
            started = datetime.fromtimestamp(_whole_number_of_record(record, "startTime"), UTC)
            if started <= last and record.get("sourceAddress") in names:
                refused = Refused(
                    str(record["sourceAddress"]),
                    str(record.get("destinationAddress")),
                    _whole_number_of_record(record, "destinationPort"),
                    str(record.get("protocol")),
                )
                counted[refused] += _whole_number_of_record(record, "packets") or 1
        return ConnectionsSeen(tuple(self._results(place, run, names, counted)))

    def _results(
        self, place: str, run: RunStatus, names: Mapping[str, str], counted: Counter[Refused]
    ) -> Iterator[DroppedResult]:
        for index, (one, packets) in enumerate(counted.items()):
            source = names[one.source]
            target = names.get(one.target) or f"outside ({one.target})"
            left = index < _MOST_SIDES and self._left(place, run, one)
            missing = f"ingress rule of {target}"
            yield DroppedResult(
                f"{source} -> {target} {protocol_name(one.protocol)} {one.port}",
                packets,
                f"no {missing} lets it through"
                if left
                else f"no egress rule of {source}, or no {missing}, lets it through",
            )

    def _left(self, place: str, run: RunStatus, one: Refused) -> bool:
        """Whether the sender's own rules let the packets out. Then the receiver's rules refused them."""
        condition = (
            f"data.action = 'ACCEPT' and data.sourceAddress = '{one.source}' and "
            f"data.destinationAddress = '{one.target}' and data.destinationPort = {one.port}"
        )
        return any(True for _ in self._records(place, condition, run.created - _WINDOW, 1))

    def _records(self, place: str, condition: str, since: datetime, most: int) -> Iterator[Mapping[str, Any]]:
        query = f'search "{place}" | where {condition} | sort by datetime asc'
        entries = logs.first_log_entries(self.session, self.call, query, "Read the flow log", since, most)
        for content in entries:
            data = content.get("data")
            if isinstance(data, Mapping):
                yield data

    def _place(self, run: RunStatus) -> str | None:
        """The flow log in the syntax of a search: the named one, or that of the run's subnet, in the log group of the
        run."""
        first = run.nodes[0]
        group = self.named["group"] if self.named else (first.log or "//").split("/")[1]
        if group not in self._logs:
            self._logs[group] = self._in_group(group) if group else []
        # Most log groups have no flow log. Then the run's subnet is not looked up.
        for log in self._logs[group]:
            if self.named or log.configuration.source.resource == self._subnet(first.run.id):
                return f"{log.compartment_id}/{group}/{log.id}"
        return None

    def _in_group(self, group: str) -> list[Any]:
        client = self.session.client("logging")
        if self.named:
            return [call_oci(self.call, "Read the flow log", partial(client.get_log, group, self.named["log"])).data]
        chosen = {"log_type": "SERVICE", "source_service": "flowlogs"}
        found = call_oci(self.call, "List the flow logs", partial(client.list_logs, group, **chosen)).data
        return [log for log in found if log.lifecycle_state == "ACTIVE"]

    def _subnet(self, run: str) -> str:
        if run not in self._subnets:
            self._subnets[run] = self._ask_subnet(run)
        return self._subnets[run]

    def _ask_subnet(self, run: str) -> str:
        client = self.session.client("data_science")
        job_id = call_oci(self.call, "Read the job run", partial(client.get_job_run, run)).data.job_id
        job = call_oci(self.call, "Read the job", partial(client.get_job, job_id)).data
        layout = job.job_node_configuration_details
        groups = getattr(layout, "job_node_group_configuration_details_list", None) or ()
        places = (
            getattr(layout, "job_network_configuration", None),
            job.job_infrastructure_configuration_details,
            *(group.job_infrastructure_configuration_details for group in groups),
        )
        return next((str(one.subnet_id) for one in places if getattr(one, "subnet_id", None)), "")


def _address_of_node(status: Mapping[str, Any] | None) -> str:
    """A node's address. It is validated, because everybody who may write to the bucket can have written it."""
    try:
        return str(ip_address(str((status or {}).get("address") or "")))
    except ValueError:
        return ""


def _whole_number_of_record(record: Mapping[str, Any], name: str) -> int:
    try:
        return int(record.get(name) or 0)
    except (TypeError, ValueError):
        return 0
