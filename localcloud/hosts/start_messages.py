# SPDX-License-Identifier: Apache-2.0
"""Messages of a starting node to its supervisor, one a line, through a pipe that the run's command does not have."""

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
    """The node refuses something that it got, such as an archive. The text says why."""

    REASON = "refused"


def read_messages(report: int) -> Iterator[dict[str, Any]]:
    """Yields messages until the last writer has closed the pipe."""
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
    """Raises an error if a message says that the node could not start."""
    for message in messages:
        for key, kind in (("error", UnstartableError), ("refused", RefusedError)):
            if key in message:
                raise kind(str(message[key])[:_LONGEST_REASON])
