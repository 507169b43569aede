# SPDX-License-Identifier: Apache-2.0
"""Where the addresses of the other nodes come from: the store, a list, or the platform (launcher/platforms.py).

In the run's folder everyone puts one small object, and one list shows all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from launcher import network, platforms
from launcher.board import RENEW_SECONDS, Board
from launcher.desk import Desk, meeting_interval, watching_interval
from launcher.document import Launch
from launcher.errors import LaunchError, MissingError, PeerFailedError
from launcher.readiness import Wait

# An end from before our own arrival may be of an earlier life of a node that begins again: it gets so long to appear.
_BELIEVED_AFTER = 30.0
_TURN = 0.02


def gather(launch: Launch, desk: Desk, generation: int, wait: Wait) -> dict[int, str]:
    """Waits until every rank that is still part of the run has arrived in a generation; their addresses."""
    missing = [rank for rank in range(launch.nodes) if rank != launch.rank]
    wait.what = lambda: named(launch, missing)
    seen: Board | None = None
    lost: list[int] = []
    while True:
        desk.interval = meeting_interval(launch.nodes, wait.waited)
        desk.check()
        now_lost = desk.lost()
        if desk.board is not seen or now_lost != lost:
            seen, lost = desk.board, now_lost
            here, gone = seen.arrived(generation), seen.gone(launch, lost)
            missing[:] = [rank for rank in range(launch.nodes) if rank not in here and rank not in gone]
            if not missing:
                _stay_seen(seen, desk, launch.rank)
                desk.interval = watching_interval(launch.nodes)
                return {rank: event.address for rank, event in here.items() if rank not in gone}
            _give_up(launch, seen, missing, gone, wait)
            if lost and not launch.spares(lost[0], len(gone | set(lost))):
                why = f"{named(launch, lost)} gave no sign of life for {desk.lost_after:.0f} s"
                raise PeerFailedError(lost[0], None, why)
        if not wait.turn(_TURN):
            raise MissingError(wait.missed())


def _stay_seen(known: Board, desk: Desk, rank: int) -> None:
    """Who came last must not take our arrival for a stale one, however long ago it was."""
    current = known.current()
    if rank in current and max(event.at for event in current.values()) - current[rank].at > RENEW_SECONDS:
        desk.renew()


def _give_up(launch: Launch, known: Board, missing: list[int], gone: frozenset[int], wait: Wait) -> None:
    believed = wait.waited > _BELIEVED_AFTER
    for final in known.finals(launch):
        if final.rank in gone and launch.spares(final.rank, len(gone)):
            continue
        label = launch.label(final.rank)
        if not final.succeeded and (believed or known.ended_since(final.rank)):
            raise PeerFailedError(final.rank, final.code, f"rank {label} has failed")
        if final.succeeded and final.rank in missing and believed:
            raise MissingError(f"rank {label} has already finished and does not start again")


def named(launch: Launch, ranks: list[int]) -> str:
    """Some ranks, as people know them, and how many more."""
    shown = ", ".join(launch.label(rank) for rank in ranks[:8])
    more = f" and {len(ranks) - 8} more" if len(ranks) > 8 else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}{more}"


@dataclass(frozen=True)
class PeerRequest:
    """What a source of peers may need. `wait.what` is set by the source."""

    launch: Launch
    environment: Mapping[str, str]
    generation: int
    wait: Wait
    desk: Desk | None


def find(request: PeerRequest) -> dict[int, str]:
    """Addresses of all that take part, by rank; MissingError naming who did not come."""
    source = request.launch.peers["from"]
    ask = _SOURCES.get(source) or platforms.peers_of(source).find
    found: dict[int, str] = ask(request)
    if source != "bucket" and request.desk is not None and request.desk.watches:
        request.desk.arrive(request.generation, found[request.launch.rank])
        if request.generation:
            # The addresses are as they were, but all must have ended before anyone starts again.
            members = gather(request.launch, request.desk, request.generation, request.wait)
            found = {rank: found[rank] for rank in members}
    return found


def _from_bucket(request: PeerRequest) -> dict[int, str]:
    """Arrives, then waits until all have."""
    if request.desk is None:
        raise LaunchError("peers come from the bucket, but the launch document names no `folder`")
    address = network.own_address(request.environment, request.desk.folder.host)
    if request.launch.nodes == 1:
        return {0: address}
    if request.generation and request.desk.strangers is not None and request.desk.strangers.members:
        raise MissingError(request.desk.strangers.alone)
    request.desk.arrive(request.generation, address)
    return gather(request.launch, request.desk, request.generation, request.wait)


def _from_list(request: PeerRequest) -> dict[int, str]:
    """As they are written."""
    addresses = tuple(str(address) for address in request.launch.peers["addresses"])
    if len(addresses) != request.launch.nodes:
        raise LaunchError(f"`peers` lists {len(addresses)} addresses for {request.launch.nodes} nodes")
    return dict(enumerate(addresses))


_SOURCES = {"bucket": _from_bucket, "list": _from_list}
