# SPDX-License-Identifier: Apache-2.0
"""Hosts carry out assignments of any dispatcher: here, one of the test, without an API."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path
from socket import socket
from typing import Any

from components.values.protocols import TCP
from components.values.security_rules import Direction
from localcloud.hosts.assignment import (
    Assignment,
    CannotStartError,
    Group,
    Interface,
    MountedFiles,
    NetworkReach,
    NodeWork,
    Outline,
    RunVerdict,
    Subnet,
)
from localcloud.hosts.fabric import Fabric
from localcloud.hosts.firewall import FirewallRule
from localcloud.hosts.run_hosts import Hosts

PORT, CLOSED = 5000, 5001
# The second node connects to both ports of the first, and prints which connection succeeded.
TALKS = f"""
import os, socket
print("reads", open("/data/in/words").read(), os.environ["PART"], os.environ["GIVEN"], os.environ["CLOUD"])
if os.environ["PART"] == "0":
    listeners = [socket.create_server(("0.0.0.0", port)) for port in ({PORT}, {CLOSED})]
    print("heard", listeners[0].accept()[0].recv(5).decode())
else:
    while True:
        try:
            socket.create_connection(("10.0.1.2", {PORT}), timeout=1).sendall(b"hello")
            break
        except ConnectionRefusedError:
            pass
    try:
        socket.create_connection(("10.0.1.2", {CLOSED}), timeout=1)
    except TimeoutError:
        print("closed")
"""


def _rule(direction: Direction) -> FirewallRule:
    return FirewallRule(
        list="own", index=0, direction=direction, protocol=TCP, peer="10.0.1.0/24", peers=(IPv4Network("10.0.1.0/24"),),
        ports=(PORT, PORT), key=f"{direction}0",
    )  # fmt: skip


@dataclass
class Desk:
    """Assigns one run, and records the reports."""

    folder: Path
    script: str
    count: int = 1
    refuses: str = ""
    said: list[tuple[str, int, str]] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    ended_with: RunVerdict | None = None
    kept_up: bool = False

    def unfinished(self) -> Iterator[tuple[str, bool]]:
        yield "run-of-nobody", False

    def outline(self, run: str) -> Outline:
        return Outline([Group("", self.count, self.count)], 1)

    async def assignment(self, run: str, folder: Path) -> Assignment:
        if self.refuses:
            raise CannotStartError(self.refuses)
        (self.folder / "words").write_text("some words")
        reach = NetworkReach((_rule("ingress"), _rule("egress")), ())
        interfaces = [
            Interface(f"interface-{rank}", f"10.0.1.{rank + 2}", f"02:00:17:00:01:0{rank + 2}", lambda: reach)
            for rank in range(self.count)
        ]
        return Assignment(
            run, "A run!", folder, self.outline(run), [self._work(rank) for rank in range(self.count)], None,
            [MountedFiles("/data/in", [("words", self.folder / "words")])],
            Subnet("subnet", "network", "10.0.1.1", "02:00:17:00:01:01", 24), interfaces, self._lines, self._upkeep,
        )  # fmt: skip

    def _work(self, rank: int) -> NodeWork:
        def environment(endpoints: Sequence[str], given: str) -> Mapping[str, str]:
            return {"PART": str(rank), "GIVEN": given, "CLOUD": endpoints[0]}

        return NodeWork(("python", "-u", "-c", self.script), (), "", environment, "", "", 0, 0)

    def _lines(self, group: str, rank: int) -> Callable[[Sequence[bytes]], None]:
        return lambda lines: self.said.extend((group, rank, line.decode()) for line in lines)

    async def _upkeep(self) -> None:
        self.kept_up = True
        await asyncio.Event().wait()

    def begins_again(self, run: str) -> None:
        self.heard.append("begins again")

    def started(self, run: str) -> None:
        self.heard.append("started")

    def ended(self, run: str, verdict: RunVerdict, folder: Path) -> None:
        self.heard.append("ended")
        self.ended_with = verdict


async def _nobody_serves(listener: socket) -> Callable[[], None]:
    return listener.close


def carried_out(desk: Desk, home: Path) -> Mapping[str, Any]:
    """Runs it on the hosts, and returns the evidence."""

    async def carry_out() -> Mapping[str, Any]:
        serve: Callable[[socket], Awaitable[Callable[[], None]]] = _nobody_serves
        hosts = Hosts(home, Fabric("http://127.0.0.1:9", ("198.51.100.1",), serve), desk)
        try:
            hosts.recover()
            while desk.ended_with is None:
                await asyncio.sleep(0.02)
            return await hosts.evidence("run-of-nobody")
        finally:
            await hosts.stop()

    home.mkdir(mode=0o700)
    return asyncio.run(asyncio.wait_for(carry_out(), 120))


def test_nodes_have_what_their_assignment_says(tmp_path: Path) -> None:
    desk = Desk(tmp_path, TALKS, 2)
    seen = carried_out(desk, tmp_path / "runs")
    assert desk.ended_with == RunVerdict("SUCCEEDED", ""), (desk.ended_with, desk.said)
    assert desk.heard == ["begins again", "started", "ended"]
    assert sorted(desk.said) == [
        ("", 0, "heard hello"),
        ("", 0, "reads some words 0 /run/trainyard http://198.51.100.1:443"),
        ("", 1, "closed"),
        ("", 1, "reads some words 1 /run/trainyard http://198.51.100.1:443"),
    ]
    assert desk.kept_up
    assert [row["port"] for row in seen["flows"] if row["direction"] == "ingress"] == [PORT]
    assert [row["port"] for row in seen["dropped"] if row["packets"]] == [CLOSED]
    assert not list((tmp_path / "runs").glob("*/node-*.json")), "environments may hold secrets"


def test_the_end_of_an_assignment_is_reported_to_its_dispatcher(tmp_path: Path) -> None:
    failing = Desk(tmp_path, "raise SystemExit(7)")
    carried_out(failing, tmp_path / "failing")
    assert failing.ended_with == RunVerdict("FAILED", "The job run exited with code 7")
    refused = Desk(tmp_path, "", refuses="nobody may have it")
    carried_out(refused, tmp_path / "refused")
    assert refused.ended_with == RunVerdict("FAILED", "nobody may have it")
    assert refused.heard[-1] == "ended"
