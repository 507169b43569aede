# SPDX-License-Identifier: Apache-2.0
"""The board: small objects in the run's folder that say which nodes have arrived, which are idle, and how nodes ended.

The names of the objects below `peers/` contain all that, so one list request reads everything:

    peers/g<generation>/<rank>/<nonce>/here/<address>
    peers/g<generation>/<rank>/<nonce>/end/<how>/<code>
    peers/g<generation>/<rank>/<nonce>/idle/<number>
    peers/g<generation>/<rank>/<nonce>/test/<what it found>   (launcher/preflight.py)
    peers/stacks/<token>                                      (a person asks for stacks: launcher/stacks)

Each start has a folder of its own (launcher/retries.py), so nodes never meet those of an earlier start. Each launcher
process has its own nonce, because the platform may start a node again within a start. All times are by the object
store's clock, so no node's clock matters.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable
from dataclasses import dataclass

from launcher.document import Launch
from launcher.retries import Final
from launcher.stores import Stored

SUCCEEDED, FAILED, RETRY, STOPPED = "succeeded", "failed", "retry", "stopped"
FOLDER = "peers/"
# A request for stacks (docs/contracts.md). Commands write it, and have the same prefix.
REQUESTS = FOLDER + "stacks/"
_TOKEN = re.compile(r"[0-9a-f]{16}")
# An arrival that is this much older than our own belongs to a dead launcher: a living one renews its arrival three
# times as often. A node that starts again may find such arrivals, for example after a local cloud was killed.
STALE_SECONDS = 90.0
RENEW_SECONDS = 30.0


@dataclass(frozen=True)
class Event:
    """One object: a node has arrived (`address`), has ended (`how`, `code`), is idle (`idle_number` is odd), or tests
    what the run expects (`test`)."""

    generation: int
    rank: int
    nonce: str
    at: float
    address: str = ""
    how: str = ""
    code: int = 0
    idle_number: int = 0
    test: str = ""


def here_name(generation: int, rank: int, nonce: str, address: str) -> str:
    """The name of a node's arrival, which is its heartbeat too."""
    return f"{FOLDER}g{generation}/{rank:04d}/{nonce}/here/{address}"


def end_name(generation: int, rank: int, nonce: str, how: str, code: int) -> str:
    """The name of the object that says how a node's processes ended."""
    return f"{FOLDER}g{generation}/{rank:04d}/{nonce}/end/{how}/{code}"


def idle_name(generation: int, rank: int, nonce: str, idle_number: int) -> str:
    """The name of the object that says a node is idle (an odd number) or active again (even). The highest counts."""
    return f"{FOLDER}g{generation}/{rank:04d}/{nonce}/idle/{idle_number}"


def finding_name(generation: int, rank: int, nonce: str, found: str) -> str:
    """The name of the object that says that a node tests what the run expects, or what it has found."""
    return f"{FOLDER}g{generation}/{rank:04d}/{nonce}/test/{found}"


def parse_board_events(listed: Iterable[Stored]) -> list[Event]:
    """Reads events from a listing of the folder. Skips names that no launcher wrote."""
    found = []
    for item in listed:
        parts = item.name.split("/")
        if len(parts) < 6 or not parts[2].isdigit() or not parts[1][1:].isdigit():
            continue
        base = (int(parts[1][1:]), int(parts[2]), parts[3], rfc3339_seconds(item.modified))
        if parts[4] == "here":
            found.append(Event(*base, address=parts[5]))
        elif parts[4] == "end" and len(parts) == 7 and parts[6].isdigit():
            found.append(Event(*base, how=parts[5], code=int(parts[6])))
        elif parts[4] == "idle" and parts[5].isdigit():
            found.append(Event(*base, idle_number=int(parts[5])))
        elif parts[4] == "test":
            found.append(Event(*base, test="/".join(parts[5:])))
    return found


def parse_stack_requests(listed: Iterable[Stored], since: float) -> tuple[str, ...]:
    """The tokens of requests for stacks that are not older than this launcher's arrival, oldest first."""
    asked = [
        (rfc3339_seconds(item.modified), item.name[len(REQUESTS) :])
        for item in listed
        if item.name.startswith(REQUESTS) and _TOKEN.fullmatch(item.name[len(REQUESTS) :])
    ]
    return tuple(token for at, token in sorted(asked) if since and at >= since)


def rfc3339_seconds(text: str) -> float:
    """An RFC 3339 time of UTC as seconds."""
    try:
        fields = [int(text[start:end]) for start, end in ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16), (17, 19))]
        fraction = text[19:].rstrip("Z").partition("+")[0]
        return calendar.timegm((*fields, 0, 0, 0)) + float(f"0{fraction}" if fraction else 0)
    except (ValueError, IndexError):
        return 0.0


@dataclass(frozen=True)
class Board:
    """All events at one moment, as seen by a node that arrived at `since` (the object store's time). `requests`: the
    tokens of requests for stacks since then."""

    all: tuple[Event, ...]
    since: float
    requests: tuple[str, ...] = ()

    def current(self) -> dict[int, Event]:
        """By rank, the newest arrival: it belongs to the rank's current launcher."""
        latest: dict[int, Event] = {}
        for event in self.all:
            if event.address and event.at >= self.since - STALE_SECONDS:
                known = latest.get(event.rank)
                if known is None or (event.at, event.generation) > (known.at, known.generation):
                    latest[event.rank] = event
        return latest

    def arrived(self, generation: int) -> dict[int, Event]:
        """By rank, the current launchers that have arrived in a generation."""
        nonces = {rank: event.nonce for rank, event in self.current().items()}
        here = (event for event in self.all if event.address and event.generation == generation)
        return {event.rank: event for event in here if nonces.get(event.rank) == event.nonce}

    def endings(self, generation: int | None = None) -> list[Event]:
        """The ends of nodes in order of time."""
        nonces = {rank: event.nonce for rank, event in self.current().items()}
        ends = [
            event
            for event in self.all
            if event.how
            and generation in (None, event.generation)
            and (nonces.get(event.rank) == event.nonce or (event.rank not in nonces and event.at >= self.since))
        ]
        return sorted(ends, key=lambda event: (event.at, event.rank))

    def ended_since(self, rank: int) -> bool:
        """Whether a node ended after this one had arrived. Then the end is certainly not an earlier launcher's."""
        return any(event.rank == rank and event.at >= self.since for event in self.endings())

    def culprit(self, generation: int) -> Event | None:
        """The first failure of a generation. It causes the failures that follow within moments."""
        return next((event for event in self.endings(generation) if event.how in (FAILED, RETRY)), None)

    def idle(self, generation: int) -> dict[int, Event]:
        """By rank, the idle reports of launchers that have not become active again."""
        nonces, latest = {rank: event.nonce for rank, event in self.current().items()}, dict[int, Event]()
        for event in self.all:
            if event.idle_number and event.generation == generation and nonces.get(event.rank) == event.nonce:
                latest[event.rank] = max(event, latest.get(event.rank, event), key=lambda other: other.idle_number)
        return {rank: event for rank, event in latest.items() if event.idle_number % 2}

    def tests(self, generation: int) -> dict[int, set[str]]:
        """By rank, what current launchers said about their tests."""
        nonces = {rank: event.nonce for rank, event in self.current().items()}
        said: dict[int, set[str]] = {}
        for event in self.all:
            if event.test and event.generation == generation and nonces.get(event.rank) == event.nonce:
                said.setdefault(event.rank, set()).add(event.test)
        return said

    def gone(self, launch: Launch, lost: Iterable[int]) -> frozenset[int]:
        """The ranks without which an elastic run goes on: those that failed, and `lost`. Empty for other runs."""
        failed = (final.rank for final in self.finals(launch) if not final.succeeded)
        return frozenset((*failed, *lost)) if launch.elastic else frozenset()

    def finals(self, launch: Launch) -> list[Final]:
        """The ends of nodes that will not start again, in order of time."""
        return [
            Final(event.rank, event.how == SUCCEEDED, event.code)
            for event in self.endings()
            if event.how == SUCCEEDED or (event.how == FAILED and self._counts(event, launch))
        ]

    def _counts(self, failure: Event, launch: Launch) -> bool:
        """In a gang only the first failure of a generation counts."""
        if launch.identity.starts_nodes_again:
            return False
        return not launch.gang or self.culprit(failure.generation) == failure
