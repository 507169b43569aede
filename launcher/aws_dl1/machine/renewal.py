# SPDX-License-Identifier: Apache-2.0
"""A machine takes the program of a newer release with the first ticket that names it, and is not made anew for it."""

from __future__ import annotations

import http.client
import os
import sys
import tarfile
from pathlib import Path

from launcher.aws_dl1.fetch import AwsError, flaw, program_words, unpacked
from launcher.aws_dl1.machine import record
from launcher.aws_dl1.machine.starting import Machine
from launcher.aws_dl1.machine.tickets import Ticket


def renew(machine: Machine, ticket: Ticket) -> None:
    """Becomes the program that the ticket names, unless that is this one, or does not start here. Nothing is lost: the
    start has not begun, and whoever comes next finds it in the queue."""
    running, name = Path(__file__).resolve().parents[3], ticket.own.get("launcher")
    if (
        name is None
        or running.parent != machine.places.launchers.resolve()
        or record.read(machine.places, ticket.number)
    ):
        return
    try:
        folder = unpacked(machine.identity, machine.settings.bucket, name, machine.places.launchers)
    except (AwsError, OSError, http.client.HTTPException, tarfile.TarError):
        # The start itself fetches it once more, and says what is wrong.
        return
    if folder.name == running.name:
        return
    problem = flaw(str(folder))
    if problem:
        machine.say(f"the program of {ticket.start} is not taken: {problem}")
        return
    machine.say(f"{ticket.start} names a newer program: goes on as {folder.name}")
    os.execv(sys.executable, program_words(str(folder), "serve"))
