# SPDX-License-Identifier: Apache-2.0
"""The cluster's objects in the bucket: reports of nodes, the queue, and the state of each start."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from launcher.aws_dl1.machine.tickets import Ticket, TicketError, parse_ticket
from launcher.board import rfc3339_seconds
from launcher.printing import LinePrinter
from launcher.stores import Folder

_TICKET = re.compile(r"queue/([0-9]{8})\.json")
_STATE = re.compile(r"starts/([0-9]{8})/([A-Za-z0-9][A-Za-z0-9._-]*)\.json")


def format_rfc3339(moment: float) -> str:
    """A time in the form that all objects use."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))


@dataclass
class Queue:
    """The queue at one moment. `states` by number and node; `canceled`: numbers of the canceled starts."""

    tickets: list[Ticket]
    states: dict[int, dict[str, Mapping[str, Any]]]
    canceled: frozenset[int]

    def names(self) -> dict[int, dict[str, str]]:
        """The state of each node, in one word."""
        return {
            number: {node: str(row.get("state")) for node, row in rows.items()} for number, rows in self.states.items()
        }


@dataclass
class Cluster:
    """The cluster of one job, as one of its nodes sees it. It reads objects again only after they have changed."""

    folder: Folder
    node: str
    say: LinePrinter
    _seen: dict[str, tuple[str, Any]] = field(default_factory=dict, init=False)

    def look(self) -> Queue:
        """Reads all tickets, and the states of their nodes."""
        tickets = []
        for row in self.folder.list("queue/"):
            match = _TICKET.fullmatch(row.name)
            ticket = (
                self._read(row.name, row.etag, lambda text, n=match: parse_ticket(int(n[1]), text)) if match else None
            )
            if ticket is not None:
                tickets.append(ticket)
        states: dict[int, dict[str, Mapping[str, Any]]] = {}
        canceled = set()
        for row in self.folder.list("starts/"):
            _, number, name = (*row.name.split("/"), "", "")[:3]
            if name == "cancel" and number.isdigit():
                canceled.add(int(number))
            match = _STATE.fullmatch(row.name)
            state = self._read(row.name, row.etag, read_node_state) if match else None
            if match and state is not None:
                states.setdefault(int(match[1]), {})[match[2]] = state
        return Queue(tickets, states, frozenset(canceled))

    def canceled(self, number: int) -> bool:
        """Whether this start was canceled."""
        return self.folder.get(f"starts/{number:08}/cancel") is not None

    def peers(self, ticket: Ticket) -> dict[str, Mapping[str, Any]]:
        """The states of one start's nodes."""
        rows = {row.name: row for row in self.folder.list(f"starts/{ticket.number:08}/")}
        found = {}
        for node in ticket.names:
            row = rows.get(f"starts/{ticket.number:08}/{node}.json")
            state = self._read(row.name, row.etag, read_node_state) if row else None
            if state is not None:
                found[node] = state
        return found

    def put_state(self, number: int, state: Mapping[str, Any]) -> None:
        self.folder.put(f"starts/{number:08}/{self.node}.json", json.dumps(state).encode())

    def put_report(self, report: Mapping[str, Any]) -> None:
        self.folder.put(f"nodes/{self.node}.json", json.dumps(report).encode())

    def silent(self, node: str, longer_than: float) -> bool:
        """Whether a node has not renewed its report for `longer_than` seconds."""
        content = self.folder.get(f"nodes/{node}.json")
        try:
            at = rfc3339_seconds(str(read_node_state(content or b"")["at"]))
        except (TicketError, KeyError):
            return True
        return time.time() - at > longer_than

    def _read(self, name: str, etag: str, made: Any) -> Any:
        """Returns None for an object whose content does not fit its name, and says so once."""
        cached = self._seen.get(name)
        if cached is None or cached[0] != etag:
            content = self.folder.get(name)
            try:
                cached = (etag, made(content) if content is not None else None)
            except TicketError as error:
                self.say(f"{name} is left out: {error}")
                cached = (etag, None)
            self._seen[name] = cached
        return cached[1]


def read_node_state(content: bytes) -> Mapping[str, Any]:
    """A node's report or its state of a start. Raises TicketError for anything else."""
    try:
        state = json.loads(content)
    except (ValueError, RecursionError):
        state = None
    if not isinstance(state, dict):
        raise TicketError("it is not a JSON object")
    # The training script of another node may have written it.
    port = state.get("sshPort", 1)
    if not isinstance(state.get("state", ""), str) or type(port) is not int or not 0 < port < 65536:
        raise TicketError("its state is not text, or its SSH port is not a port number")
    return state
