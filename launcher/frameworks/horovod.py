# SPDX-License-Identifier: Apache-2.0
"""Horovod without SSH: the main node serves Horovod's own rendezvous, every node starts its own workers."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from launcher.document import Launch, LaunchError
from launcher.placeholders import Place
from launcher.processes import Spec

_SERVER = Path(__file__).parents[1] / "servers" / "horovod_rendezvous.py"


def helpers(launch: Launch, place: Place, environment: Mapping[str, str], folder: str) -> list[Spec]:
    """The server needs Horovod itself, and so a process of its own."""
    if launch.rank != 0:
        return []
    port = launch.ports["rendezvous"].range
    if port is None:
        raise LaunchError("Horovod's rendezvous needs one port: give the stack's `ports` a number for `rendezvous`")
    hosts = ",".join(f"{address}:{launch.processes}" for address in place.addresses)
    words = [sys.executable, "-u", str(_SERVER), place.address, str(port[0]), hosts]
    return [Spec(words, environment, f"[{place.rank}.rendezvous] ", folder, helper=True)]
