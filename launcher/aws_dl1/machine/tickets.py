# SPDX-License-Identifier: Apache-2.0
"""Tickets of the queue, and which node's turn it is. Pure functions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

VERSION = 1
IN_PROGRESS, SUCCEEDED, FAILED, CANCELED = "IN_PROGRESS", "SUCCEEDED", "FAILED", "CANCELED"
ENDS = frozenset({SUCCEEDED, FAILED, CANCELED})
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_ARCHIVE = re.compile(r"\.trainyard/(?:code|launcher)/[A-Za-z0-9][A-Za-z0-9._-]*\.tar\.gz")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class TicketError(Exception):
    """An object of the queue that is not a valid ticket. Anything may be in it: other programs write to the bucket."""


@dataclass(frozen=True)
class Ticket:
    """One start of a run. `own`: the ticket's own `code` and `launcher`, if it names them."""

    number: int
    start: str
    stack: str
    run: str
    image: str
    maximum_minutes: float | None
    expects: str
    secret: str | None
    environments: Mapping[str, Mapping[str, str]]
    own: Mapping[str, str | None]

    @property
    def names(self) -> frozenset[str]:
        """The names of its nodes."""
        return frozenset(self.environments)

    def stream(self, job: str, node: str) -> str:
        """The log stream of a node, as the provider names it too. Jobs, and stacks, may share a log group."""
        return "/".join(part for part in (self.stack, job, self.run, self.start, node) if part)


def parse_ticket(number: int, content: bytes) -> Ticket:
    """Reads a ticket. TicketError if it is not valid."""
    try:
        read: dict[str, Any] = json.loads(content)
        if read["version"] != VERSION:
            raise TicketError(f"it has version {read['version']!a}, and this machine reads {VERSION}")
        minutes = read.get("maximumMinutes")
        ticket = Ticket(
            number=number,
            start=f"s{number:08}",
            stack=_require_text(read["stack"]) if read.get("stack") else "",
            run=_require_text(read["run"]),
            image=_require_text(read["image"]),
            maximum_minutes=None if minutes is None else float(minutes),
            expects=_require_text(read["expects"]) if read.get("expects") else "",
            secret=None if read.get("secret") is None else _require_text(read["secret"]),
            environments={
                _require_node_name(node["name"]): {
                    require_variable_name(name): str(value) for name, value in node["environment"].items()
                }
                for node in read["nodes"]
            },
            # A ticket with a launcher but without `code` means a run without code.
            own={
                key: _require_archive_name(read.get(key))
                for key in ("code", "launcher")
                if "launcher" in read or key in read
            },
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise TicketError(f"it is not a ticket: {error!r}") from None
    if ticket.image.startswith("-"):
        raise TicketError(f"{ticket.image!a} is not an image")
    return ticket


def _require_text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!a} is not a text")
    return value


def _require_node_name(value: Any) -> str:
    if not _NAME.fullmatch(_require_text(value)):
        raise ValueError(f"{value!a} is not a node's name")
    return str(value)


def _require_archive_name(value: Any) -> str | None:
    if value is not None and not _ARCHIVE.fullmatch(_require_text(value)):
        raise ValueError(f"{value!a} is not the name of an archive")
    return None if value is None else str(value)


def require_variable_name(name: str) -> str:
    """The name, if it is valid for a variable. Otherwise ValueError."""
    if not _VARIABLE.fullmatch(name):
        raise ValueError(f"{name!a} is not a variable's name")
    return name


@dataclass(frozen=True)
class Turn:
    """What a node has to do next. `ticket` None: nothing. `waits_for`: the nodes that have to end an earlier ticket
    first, each with the ticket's number. `goes_on`: all nodes with unended tickets that this node takes part in."""

    ticket: Ticket | None
    waits_for: Mapping[str, int]
    goes_on: frozenset[str]


def next_turn(node: str, tickets: Sequence[Ticket], states: Mapping[int, Mapping[str, str]]) -> Turn:
    """A ticket begins when all its nodes have ended every earlier ticket that names them."""
    ordered = sorted(tickets, key=lambda ticket: ticket.number)

    def open_nodes(ticket: Ticket) -> frozenset[str]:
        return frozenset(name for name in ticket.names if states.get(ticket.number, {}).get(name) not in ENDS)

    goes_on = frozenset(name for ticket in ordered if node in ticket.names for name in open_nodes(ticket))
    for index, ticket in enumerate(ordered):
        if node not in open_nodes(ticket):
            continue
        waits_for = {
            name: earlier.number for earlier in reversed(ordered[:index]) for name in open_nodes(earlier) & ticket.names
        }
        return Turn(ticket, waits_for, goes_on)
    return Turn(None, {}, goes_on)
