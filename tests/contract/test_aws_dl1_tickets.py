# SPDX-License-Identifier: Apache-2.0
"""Tickets of a cluster's queue: the provider and the machines use the same names."""

from __future__ import annotations

from components.aws.client import tickets as of_provider
from components.platform.runs import NodeSpec, RunSpec, Timeouts
from launcher.aws_dl1.machine import tickets as of_machine


def _ticket(stack: str, job: str, run: str) -> of_provider.Ticket:
    cluster = {"bucket": "vision", "job": job, "region": "us-east-1", "stack": stack, "logGroup": "training"}
    spec = RunSpec(
        platform="aws-dl1", display_name=run, tags={"run": run}, nodes=(NodeSpec("main-0"), NodeSpec("worker-0")),
        image="registry/train:1", maximum_runtime_minutes=None, until="started", own={"cluster": cluster},
        timeouts=Timeouts(), fingerprint="", expects='{"version": 1}',
    )  # fmt: skip
    return of_provider.ticket_of(spec, 1, "2026-11-23T00:00:00Z")


def test_no_two_nodes_of_a_log_group_share_a_stream_and_both_sides_name_it() -> None:
    """The first starts of all jobs have the same number, and runs of different jobs often have the same name."""
    tickets = [_ticket(stack, job, run) for stack in ("dev", "prod") for job in ("one", "two") for run in ("base", "x")]
    names = [ticket.stream(node) for ticket in tickets for node in ticket.node_names]
    assert len(set(names)) == len(names) == 16
    read = [(of_machine.parse_ticket(ticket.number, ticket.body), ticket) for ticket in tickets]
    assert {one.expects for one, _ in read} == {'{"version": 1}'}
    assert [one.stream(ticket.cluster.job, node) for one, ticket in read for node in ticket.node_names] == names
