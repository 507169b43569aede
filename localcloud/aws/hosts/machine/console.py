# SPDX-License-Identifier: Apache-2.0
"""The output of a machine: console lines for people, and reports for the local cloud."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

# The beginning of a report. All other lines begin with `[`, so no output of a program can be taken for a report.
REPORT = "\x1etrainyard "
# The cloud accepts lines of 64 KiB, and JSON may need six bytes for a character.
PART = 8000
# docker splits longer lines.
_LONGEST = 16 * 1024


def say(source: str, text: str) -> None:
    """Prints a line on the console."""
    _write(f"[{source}] {text}\n")


def report(event: str, **details: Any) -> None:
    """Sends a report to the cloud."""
    _write(f"{REPORT}{json.dumps({'event': event, **details})}\n")


async def pass_on(source: str, stream: asyncio.StreamReader) -> None:
    """Passes on a program's output until the program closes it. Long lines are split."""
    async for line in lines(stream, PART):
        say(source, line)


async def lines(stream: asyncio.StreamReader, longest: int = _LONGEST) -> Any:
    """The lines of a program's output. Long lines are split."""
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
