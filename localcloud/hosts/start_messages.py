# SPDX-License-Identifier: Apache-2.0
"""What a node that starts says to its supervisor, one message a line, through a pipe that no command of the run has."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

_LONGEST_REASON = 2000


class UnstartableError(Exception):
    """The node could not start. The text says why."""

    REASON = "unstartable"


class RefusedError(UnstartableError):
    """What the node got is not taken, such as an archive. The text says why."""

    REASON = "refused"


def read_messages(report: int) -> Iterator[dict[str, Any]]:
    """The messages as they come, until the last writer has gone."""
    pending = b""
    while True:
        line, newline, rest = pending.partition(b"\n")
        if newline:
            pending = rest
            yield json.loads(line)
        elif more := os.read(report, 4096):
            pending += more
        else:
            return


def raise_if_unstartable(messages: Iterable[dict[str, Any]]) -> None:
    """Raises the reason why the node could not start, if there is one."""
    for message in messages:
        for key, kind in (("error", UnstartableError), ("refused", RefusedError)):
            if key in message:
                raise kind(str(message[key])[:_LONGEST_REASON])
