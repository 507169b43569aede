# SPDX-License-Identifier: Apache-2.0
"""What a machine prints: its console for people, and reports for the cloud that it runs in."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

# A line that begins so is a report. All other lines begin with `[`, so nothing that a program prints becomes one.
REPORT = "\x1etrainyard "
# The cloud takes lines of 64 KiB. JSON may write a character as six.
PART = 8000
# docker keeps longer lines in parts.
_LONGEST = 16 * 1024


def say(source: str, text: str) -> None:
    """One line of the console."""
    _write(f"[{source}] {text}\n")


def report(event: str, **details: Any) -> None:
    """Tells the cloud."""
    _write(f"{REPORT}{json.dumps({'event': event, **details})}\n")


async def pass_on(source: str, stream: asyncio.StreamReader) -> None:
    """Passes on what a program prints, until it closes its output. Lines without an end are cut."""
    async for line in lines(stream, PART):
        say(source, line)


async def lines(stream: asyncio.StreamReader, longest: int = _LONGEST) -> Any:
    """The lines of a program. One without an end comes in parts."""
    pending = b""
    while chunk := await stream.read(PART):
        *whole, pending = (pending + chunk).split(b"\n")
        if len(pending) > longest:
            whole, pending = [*whole, pending], b""
        for line in whole:
            yield line.decode(errors="replace")
    if pending:
        yield pending.decode(errors="replace")


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
