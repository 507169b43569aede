# SPDX-License-Identifier: Apache-2.0
"""What the program says to whoever runs Pulumi: the engine prints what it gets, so nothing in it may give orders."""

from __future__ import annotations

import pulumi

from launcher.escaping import terminal_lines


def warn(text: str) -> None:
    """A line, or several, that are shown and passed over."""
    pulumi.log.warn(terminal_lines(text))


def program_error(text: str) -> pulumi.RunError:
    """What to raise when the stack cannot be made: the engine shows the text alone."""
    return pulumi.RunError(terminal_lines(text))
