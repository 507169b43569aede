# SPDX-License-Identifier: Apache-2.0
"""Whose turn it is, and what a ticket may be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from launcher.aws_dl1.machine.cluster import read_node_state
from launcher.aws_dl1.machine.tickets import (
    CANCELED,
    FAILED,
    IN_PROGRESS,
    SUCCEEDED,
    Ticket,
    TicketError,
    next_turn,
    parse_ticket,
)


def ticket(number: int, *nodes: str, **more: Any) -> Ticket:
    rows = [{"name": node, "environment": {}} for node in nodes]
    return parse_ticket(number, json.dumps({"version": 1, "run": "base", "image": "i", "nodes": rows, **more}).encode())


A1, A2, A3 = ticket(1, "a", "b"), ticket(2, "a", "b"), ticket(3, "b")


@pytest.mark.parametrize(
    ("node", "tickets", "states", "number", "waits_for"),
    [
        ("a", [], {}, None, {}),
        ("a", [A1], {}, 1, {}),
        ("a", [A2, A1], {}, 1, {}),
        ("a", [A1], {1: {"a": IN_PROGRESS}}, 1, {}),
        ("a", [A1, A2], {1: {"a": SUCCEEDED}}, 2, {"b": 1}),
        ("a", [A1, A2], {1: {"a": FAILED, "b": IN_PROGRESS}}, 2, {"b": 1}),
        ("a", [A1, A2], {1: {"a": FAILED, "b": CANCELED}}, 2, {}),
        # A node that the next ticket does not name holds it up no longer: it may be gone.
        ("b", [A1, A3], {1: {"b": SUCCEEDED}}, 3, {}),
        ("a", [A1, A3], {1: {"a": SUCCEEDED}}, None, {}),
        ("a", [A1, A2], {1: {"a": SUCCEEDED, "b": SUCCEEDED}, 2: {"a": SUCCEEDED}}, None, {}),
        # A state nobody knows is no end.
        ("a", [A1], {1: {"a": "DONE"}}, 1, {}),
        ("c", [A1, A2, A3], {}, None, {}),
    ],
)
def test_a_node_starts_the_next_ticket_that_nobody_runs(
    node: str, tickets: list[Ticket], states: dict[int, dict[str, str]], number: int | None, waits_for: dict[str, int]
) -> None:
    found = next_turn(node, tickets, states)
    assert (found.ticket.number if found.ticket else None, dict(found.waits_for)) == (number, waits_for)


def test_unended_nodes_of_shared_tickets_are_listed() -> None:
    assert next_turn("a", [A1, A2, A3], {1: {"a": SUCCEEDED, "b": SUCCEEDED}, 2: {"a": SUCCEEDED}}).goes_on == {"b"}
    assert next_turn("a", [A1, A3], {1: {"a": SUCCEEDED, "b": FAILED}}).goes_on == frozenset()


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"image": "--privileged"},
        {"image": ""},
        {"run": 3},
        {"nodes": None},
        {"nodes": [{"name": "../x", "environment": {}}]},
        {"nodes": [{"name": "a", "environment": {"A B": "x"}}]},
        {"maximumMinutes": "soon"},
        {"code": "../../etc/shadow"},
        {"launcher": ".trainyard/launcher/..tar.gz"},
    ],
)
def test_an_invalid_ticket_is_refused(change: dict[str, Any]) -> None:
    content = {"version": 1, "run": "base", "image": "i", "nodes": [{"name": "a", "environment": {}}], **change}
    with pytest.raises(TicketError):
        parse_ticket(1, json.dumps(content).encode())
    with pytest.raises(TicketError):
        parse_ticket(1, b"[" * 100000)


def test_the_code_of_a_ticket_replaces_that_of_the_machine() -> None:
    assert ticket(1, "a").own == {}
    launcher = ".trainyard/launcher/1.tar.gz"
    assert ticket(1, "a", launcher=launcher).own == {"launcher": launcher, "code": None}
    assert ticket(1, "a", code=None).own == {"code": None}
    assert ticket(1, "a", code=".trainyard/code/resnet-1.tar.gz").own == {"code": ".trainyard/code/resnet-1.tar.gz"}


@pytest.mark.parametrize(
    "state",
    [
        {"state": ["FAILED"]}, {"state": {}}, {"state": "READY", "sshPort": "22"}, {"sshPort": [22]},
        {"sshPort": 1e999}, {"sshPort": True}, {"sshPort": 0}, {"sshPort": 65536}, {"sshPort": None}, [], "FAILED",
    ],
)  # fmt: skip
def test_invalid_objects_of_other_nodes_do_not_end_the_program(state: Any) -> None:
    with pytest.raises(TicketError):
        read_node_state(json.dumps(state).encode())
    assert read_node_state(b'{"state": "READY", "sshPort": 3022}') == {"state": "READY", "sshPort": 3022}
