# SPDX-License-Identifier: Apache-2.0
"""Horovod without SSH: the main node serves Horovod's own rendezvous, every node starts its own workers."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from launcher.document import Launch
from launcher.errors import LaunchError
from launcher.placeholders import Place
from launcher.processes import Spec

_SERVERS = Path(__file__).parents[1] / "servers"


def helpers(launch: Launch, place: Place, environment: Mapping[str, str], folder: str) -> list[Spec]:
    """The rendezvous server. It imports Horovod, so it runs in a process of its own."""
    if launch.rank != 0:
        return []
    ports = launch.port_numbers("rendezvous", 0)
    if not ports:
        raise LaunchError("Horovod's rendezvous needs one port: give the stack's `ports` a number for `rendezvous`")
    if launch.elastic:
        met = len([address for address in place.addresses if address])
        program = ["horovod_elastic.py", *map(str, (met, launch.processes, launch.fewest))]
    else:
        program = ["horovod_rendezvous.py", ",".join(f"{address}:{launch.processes}" for address in place.addresses)]
    words = [sys.executable, "-u", str(_SERVERS / program[0]), place.address, str(ports[0]), *program[1:]]
    return [Spec(words, environment, f"[{launch.rank}.rendezvous] ", folder, helper=True)]


def wrap_command(launch: Launch, words: Sequence[str]) -> list[str]:
    """Wraps an elastic worker: it joins the others before it becomes the command. PYTHONPATH stays unchanged."""
    return [sys.executable, "-I", "-u", str(_SERVERS / "horovod_join.py"), *words] if launch.elastic else list(words)
