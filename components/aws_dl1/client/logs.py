# SPDX-License-Identifier: Apache-2.0
"""What nodes printed, from CloudWatch Logs."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from components.aws_dl1.client.tickets import Ticket
from components.platform.calls import Call
from components.s3.calls import read_if_exists
from components.s3.session import Session
from launcher.redraws import whole_lines

# Lines can be read a moment after they are written.
_LOOKS = 5
_SECONDS_BETWEEN_LOOKS = 2.0
_MOST = 10_000
# A line that was drawn over and over has several entries (launcher/redraws.py).
_PARTS = 4


@dataclass(frozen=True, slots=True)
class LogEvent:
    """`time`: milliseconds since 1970."""

    time: int
    text: str


def last_lines(session: Session, call: Call, ticket: Ticket, node: str, limit: int, looks: int = _LOOKS) -> list[str]:
    """The last lines of a node, oldest first."""
    for look in range(looks):
        answer = _page(session, call, ticket, node, limit=min(limit * _PARTS, _MOST), startFromHead=False)
        if answer is not None and answer["events"]:
            return whole_lines(str(event.get("message") or "").rstrip() for event in answer["events"])[-limit:]
        if look + 1 < looks:
            call.report.status("waiting for the last log lines")
            call.stop.wait(_SECONDS_BETWEEN_LOOKS)
    return []


def lines_after(
    session: Session, call: Call, ticket: Ticket, node: str, token: str | None
) -> Iterator[tuple[LogEvent, str | None]]:
    """Every line of a node after the place that `token` names, and each with the place after it."""
    while True:
        where: dict[str, Any] = {"nextToken": token} if token else {}
        answer = _page(session, call, ticket, node, startFromHead=True, **where)
        if answer is None:
            return
        after = answer.get("nextForwardToken")
        for event in answer["events"]:
            yield LogEvent(int(event.get("timestamp") or 0), str(event.get("message") or "").rstrip()), after
        # The same place again is the end of what there is.
        if not after or after == token:
            return
        token = after


def _page(session: Session, call: Call, ticket: Ticket, node: str, **options: Any) -> Any:
    """A page of a node's stream. None while there is none."""
    client = session.client("logs", ticket.cluster.region)
    ask = partial(
        client.get_log_events, logGroupName=ticket.cluster.log_group, logStreamName=ticket.stream(node), **options
    )
    return read_if_exists(call, "Read the run's log", ask) if ticket.cluster.log_group else None
