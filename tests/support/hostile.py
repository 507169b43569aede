# SPDX-License-Identifier: Apache-2.0
"""What a stranger may write, and what must be left of it in the bytes that a command prints."""

from __future__ import annotations

import re

# A terminal obeys the first five, a reader of lines the sixth, Markdown the next, a workflow's runner the last two.
PLANTED = "\x1b[31m\x9b2J\x07\r\u202e\x00x | y <img src=x> [a](http://b) @c\n::error::planted\n ##[error]planted"
_CONTROLS = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]")
# Blanks before it do not keep a runner from obeying.
_COMMAND = re.compile(rb"^\s*::[a-z]|##\[", re.MULTILINE)


def orders(printed: bytes, own_commands: bool = False) -> list[bytes]:
    """What in these bytes would give orders; `own_commands`: workflow commands are what was asked for."""
    found = [line for line in printed.split(b"\n") if _CONTROLS.search(line)]
    commands = [line for line in printed.split(b"\n") if _COMMAND.search(line)]
    if own_commands:
        commands = [line for line in commands if not line.startswith((b"::error file=", b"::warning file="))]
    return found + commands
