# SPDX-License-Identifier: Apache-2.0
"""Calls of a cloud that a person waits for, outside of an engine: what is noted meanwhile goes to that person."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from launcher.escaping import terminal
from provider.base.resource import Call, Stop

# Takes a line of progress. A command passes the door by which it prints; services print nothing themselves.
Tell = Callable[[str], None]


@dataclass(frozen=True)
class PersonReporter:
    """A reporter whose notes go to a person, one line each."""

    tell: Tell

    def info(self, message: str) -> None:
        self.tell(terminal(message))

    warning = info

    def status(self, message: str) -> None:
        """Shown by engines only; each lasting word of it comes by `info` as well."""


def call_of(name: str, tell: Tell) -> Call:
    return Call(urn="", type="", name=name, report=PersonReporter(tell), stop=Stop())
