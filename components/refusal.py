# SPDX-License-Identifier: Apache-2.0
"""Errors that only the cloud can reveal, such as a missing bucket. They are found before anything is made."""

from __future__ import annotations

from collections.abc import Sequence

from catalog.platforms import PLATFORM_KEY
from schemas.checks.registry import Wrong, at


class RefusedError(Exception):
    """The platform refuses to make a stack, because its file names a missing thing. The program adds file and line."""

    def __init__(self, wrongs: Sequence[Wrong]) -> None:
        super().__init__("; ".join(wrong.message for wrong in wrongs))
        self.wrongs = tuple(wrongs)


def moved(platform: str, there: str) -> Wrong:
    """A stack whose file names another platform than the one that it is up on."""
    message = (
        f"the stack is up on `{there}`, and nothing moves to `{platform}`: its runs would end there, "
        "and what holds them would go"
    )
    remedy = (
        f"write `{PLATFORM_KEY}: {there}` again, and make a new stack for `{platform}`: both can be up. "
        "Or take this one down first (docs/leaving.md)"
    )
    return Wrong(at("platform"), message, remedy)
