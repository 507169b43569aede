# SPDX-License-Identifier: Apache-2.0
"""Hostile text that others may write into names, and a check that a command's output has none of its control
sequences."""

from __future__ import annotations

import re

# The first five control a terminal, the sixth splits lines, the next are Markdown and HTML, the last two are commands
# of a workflow.
PLANTED = "\x1b[31m\x9b2J\x07\r\u202e\x00x | y <img src=x> [a](http://b) @c\n::error::planted\n ##[error]planted"
_CONTROLS = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]")
# A workflow's runner accepts blanks before a command.
_COMMAND = re.compile(rb"^\s*::[a-z]|##\[", re.MULTILINE)


def orders(printed: bytes, own_commands: bool = False) -> list[bytes]:
    """Everything in these bytes that would control a terminal or a workflow. `own_commands`: workflow commands are
    allowed."""
    found = [line for line in printed.split(b"\n") if _CONTROLS.search(line)]
    commands = [line for line in printed.split(b"\n") if _COMMAND.search(line)]
    if own_commands:
        commands = [line for line in commands if not line.startswith((b"::error file=", b"::warning file="))]
    return found + commands
