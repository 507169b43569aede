# SPDX-License-Identifier: Apache-2.0
"""Calls of a cloud for a command, without an engine. Progress goes to the person who waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from launcher.escaping import terminal
from provider.base.resource import Call, Stop

# Takes a line of progress. Only commands print, so a command passes its own function.
Tell = Callable[[str], None]


@dataclass(frozen=True)
class PersonReporter:
    """Reports to a person, one line at a time."""

    tell: Tell

    def info(self, message: str) -> None:
        self.tell(terminal(message))

    warning = info

    def status(self, message: str) -> None:
        """Ignored: only engines show a status, and what matters comes through `info` as well."""


def call_of(name: str, tell: Tell) -> Call:
    return Call(urn="", type="", name=name, report=PersonReporter(tell), stop=Stop())
