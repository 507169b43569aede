# SPDX-License-Identifier: Apache-2.0
"""Finds the addresses of the other nodes: in the store, in a list, or from the platform (launcher/platforms.py).

In the store each node puts one small object into the run's folder, and one list request shows all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from launcher import network, platforms
from launcher.board import RENEW_SECONDS, Board
from launcher.board_client import BoardClient, meeting_interval, watching_interval
from launcher.document import Launch
from launcher.errors import LaunchError, MissingError, PeerFailedError
from launcher.readiness import Wait

# An end from before our arrival may belong to an earlier launcher of a node that is starting again. That node has this
# many seconds to arrive before the end counts.
_BELIEVED_AFTER = 30.0
_TURN = 0.02
_STORE_REMEDY = "check the bucket, and this node's way to it, then raise `attempt`"


def gather_addresses(launch: Launch, board_client: BoardClient, generation: int, wait: Wait) -> dict[int, str]:
    """Waits until all ranks that are still part of the run have arrived in a generation. Returns their addresses."""
    missing = [rank for rank in range(launch.nodes) if rank != launch.rank]

    def what() -> str:
        # While the store does not answer, a node cannot know which of the others have arrived.
        if board_client.trouble:
            return f"the object store, without which the nodes cannot meet: {board_client.trouble}"
        others = [rank for rank in missing if rank != launch.rank]
        return name_ranks(launch, others) if others else "its own arrival to show up in the object store"

    wait.what = what
    seen: Board | None = None
    lost: list[int] = []
    while True:
        board_client.interval = meeting_interval(launch.nodes, wait.waited)
        board_client.check()
        now_lost = board_client.lost()
        if board_client.board is not seen or now_lost != lost:
            seen, lost = board_client.board, now_lost
            here, gone = seen.arrived(generation), seen.gone(launch, lost)
            missing[:] = [rank for rank in range(launch.nodes) if rank not in here and rank not in gone]
            if not missing:
                _renew_arrival(seen, board_client, launch.rank)
                board_client.interval = watching_interval(launch.nodes)
                return {rank: event.address for rank, event in here.items() if rank not in gone}
            _give_up(launch, seen, missing, gone, wait)
            if lost and not launch.spares(lost[0], len(gone | set(lost))):
                why = f"{name_ranks(launch, lost)} sent no heartbeat for {board_client.lost_after:.0f} s"
                raise PeerFailedError(lost[0], None, why)
        if not wait.turn(_TURN):
            wait.remedy = _STORE_REMEDY if board_client.trouble else wait.remedy
            raise MissingError(wait.timeout_message())


def _renew_arrival(known: Board, board_client: BoardClient, rank: int) -> None:
    """Renews an old arrival, so that the node that arrived last does not take it for a stale one."""
    current = known.current()
    if rank in current and max(event.at for event in current.values()) - current[rank].at > RENEW_SECONDS:
        board_client.renew()


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


def name_ranks(launch: Launch, ranks: list[int]) -> str:
    """The first ranks for people, and the number of the others."""
    shown = ", ".join(launch.label(rank) for rank in ranks[:8])
    more = f" and {len(ranks) - 8} more" if len(ranks) > 8 else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}{more}"


@dataclass(frozen=True)
class PeerRequest:
    """The input of every source of peers. The source sets `wait.what`."""

    launch: Launch
    environment: Mapping[str, str]
    generation: int
    wait: Wait
    board_client: BoardClient | None


def find_addresses(request: PeerRequest) -> dict[int, str]:
    """The addresses of all nodes that take part, by rank. MissingError names those that did not arrive."""
    source = request.launch.peers["from"]
    ask = _SOURCES.get(source) or platforms.peers_of(source).find_peer_addresses
    found: dict[int, str] = ask(request)
    if source != "bucket" and request.board_client is not None and request.board_client.watches:
        request.board_client.arrive(request.generation, found[request.launch.rank])
        if request.generation:
            # The addresses have not changed, but all nodes must have ended before any starts again.
            members = gather_addresses(request.launch, request.board_client, request.generation, request.wait)
            found = {rank: found[rank] for rank in members}
    return found


def _from_bucket(request: PeerRequest) -> dict[int, str]:
    """Posts this node's arrival, then waits for the others."""
    if request.board_client is None:
        raise LaunchError("peers come from the bucket, but the launch document names no `folder`")
    address = network.own_address(request.environment, request.board_client.folder.host)
    if request.launch.nodes == 1:
        return {0: address}
    if (
        request.generation
        and request.board_client.foreign_nodes is not None
        and request.board_client.foreign_nodes.members
    ):
        raise MissingError(request.board_client.foreign_nodes.alone)
    request.board_client.arrive(request.generation, address)
    return gather_addresses(request.launch, request.board_client, request.generation, request.wait)


def _from_list(request: PeerRequest) -> dict[int, str]:
    """The addresses in the launch document."""
    addresses = tuple(str(address) for address in request.launch.peers["addresses"])
    if len(addresses) != request.launch.nodes:
        raise LaunchError(f"`peers` lists {len(addresses)} addresses for {request.launch.nodes} nodes")
    return dict(enumerate(addresses))


_SOURCES = {"bucket": _from_bucket, "list": _from_list}
