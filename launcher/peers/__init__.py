# SPDX-License-Identifier: Apache-2.0
"""Where the addresses of the other nodes come from: the store, a list, or the platform. Only the source is imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

from launcher import platforms
from launcher.desk import Desk
from launcher.document import Launch
from launcher.waiting import Wait

# Each has `find(request)`, which gives addresses by rank, as the platforms' own have.
_MODULES = {
    "bucket": "launcher.peers.bucket",
    "list": "launcher.peers.fixed",
}


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
    module = import_module(_MODULES[source]) if source in _MODULES else platforms.peers_of(source)
    found: dict[int, str] = module.find(request)
    if source != "bucket" and request.desk is not None and request.desk.watches:
        request.desk.arrive(request.generation, found[request.launch.rank])
        if request.generation:
            # The addresses are as they were, but all must have ended before anyone starts again.
            from launcher.peers.meeting import gather

            members = gather(request.launch, request.desk, request.generation, request.wait)
            found = {rank: found[rank] for rank in members}
    return found
