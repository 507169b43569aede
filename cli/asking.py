# SPDX-License-Identifier: Apache-2.0
"""Calls of a cloud that a command makes itself: what is said meanwhile."""

from __future__ import annotations

from cli.out import say
from launcher.escaping import terminal
from provider.base.resource import Call, Stop


class Terminal:
    """Notes go to stderr: what a command is asked for has stdout to itself."""

    def info(self, message: str) -> None:
        say(terminal(message), err=True)

    warning = info

    def status(self, message: str) -> None:
        """Shown by engines only; each lasting word of it comes by `info` as well."""


def call_of(name: str) -> Call:
    return Call(urn="", type="", name=name, report=Terminal(), stop=Stop())
