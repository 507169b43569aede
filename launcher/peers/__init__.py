# SPDX-License-Identifier: Apache-2.0
"""Where the addresses of the other nodes come from: a small choice, by name. Only the chosen one is imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

from launcher.desk import Desk
from launcher.document import Launch, LaunchError
from launcher.waiting import Wait

# Each has `find(asked)`, which gives addresses by rank.
_MODULES = {
    "bucket": "launcher.peers.bucket",
    "cluster-metadata": "launcher.peers.cluster_metadata",
    "openpai": "launcher.peers.openpai",
    "list": "launcher.peers.fixed",
}


@dataclass(frozen=True)
class Asked:
    """What a source of peers may need. `wait.what` is set by the source."""

    launch: Launch
    environment: Mapping[str, str]
    generation: int
    wait: Wait
    desk: Desk | None


def find(asked: Asked) -> dict[int, str]:
    """Addresses of all that take part, by rank; MissingError naming who did not come."""
    source = asked.launch.peers["from"]
    if source not in _MODULES:
        raise LaunchError(f"peers come from `{source}`, which this image does not know: build it anew")
    found: dict[int, str] = import_module(_MODULES[source]).find(asked)
    if source != "bucket" and asked.desk is not None and asked.desk.watches:
        asked.desk.arrive(asked.generation, found[asked.launch.rank])
        if asked.generation:
            # The addresses are as they were, but all must have ended before anyone starts again.
            from launcher.peers.meeting import gather

            members = gather(asked.launch, asked.desk, asked.generation, asked.wait)
            found = {rank: found[rank] for rank in members}
    return found
