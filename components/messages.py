# SPDX-License-Identifier: Apache-2.0
"""Messages of the program to people, and errors that only the cloud can reveal, such as a missing bucket.

The engine prints messages as they are, so terminal commands in them are escaped. Pulumi is imported on first use:
`trainyard up` needs `moved_platform` only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from catalog.platforms import PLATFORM_KEY, platform_word
from catalog.secret_looks import without_tokens
from launcher.escaping import terminal_lines
from schemas.findings import Wrong, at

if TYPE_CHECKING:
    import pulumi


def warn_user(text: str) -> None:
    """Shows one or more lines."""
    import pulumi

    pulumi.log.warn(terminal_lines(without_tokens(text)))


def program_error(text: str) -> pulumi.RunError:
    """The exception to raise if the stack cannot be made. The engine shows its text without a traceback."""
    import pulumi

    return pulumi.RunError(terminal_lines(without_tokens(text)))


class RefusedError(Exception):
    """The platform refuses to make a stack, because its file names a missing thing. The program adds file and line."""

    def __init__(self, wrongs: Sequence[Wrong]) -> None:
        super().__init__("; ".join(wrong.message for wrong in wrongs))
        self.wrongs = tuple(wrongs)


def moved_platform(platform: str, there: str) -> Wrong:
    """The finding for a stack whose file names another platform than the one on which it is up."""
    platform, there = platform_word(platform), platform_word(there)
    message = (
        f"the stack is up on `{there}`, and cannot move to `{platform}`: its runs would end, "
        "and their resources would be deleted"
    )
    remedy = (
        f"write `{PLATFORM_KEY}: {there}` again, and make a new stack for `{platform}`: both can be up. "
        "Or take this one down first (docs/leaving.md)"
    )
    return Wrong(at("platform"), message, remedy)
