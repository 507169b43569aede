# SPDX-License-Identifier: Apache-2.0
"""Messages of the program to people. The engine prints them as they are, so terminal commands in them are escaped."""

from __future__ import annotations

import pulumi

from launcher.escaping import terminal_lines


def warn(text: str) -> None:
    """Shows one or more lines and goes on."""
    pulumi.log.warn(terminal_lines(text))


def program_error(text: str) -> pulumi.RunError:
    """The exception to raise if the stack cannot be made. The engine shows its text without a traceback."""
    return pulumi.RunError(terminal_lines(text))
