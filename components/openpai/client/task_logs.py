# SPDX-License-Identifier: Apache-2.0
"""Reads the lines that tasks printed, from the cluster's log API."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from components.openpai.client.cluster_calls import ask_cluster_if_exists, attempt_on_cluster, job_path
from components.openpai.client.cluster_errors import ApiError
from components.openpai.client.cluster_session import Answer, Session
from components.openpai.client.jobs import RunId
from components.openpai.client.task_states import JobDetail
from components.platform.calls import Call, ProviderError
from components.platform.log_lines import look_for_lines
from launcher.redraws import whole_lines

# The file with both streams in their order, or else one of them.
_FILES = ("all", "stdout", "stderr")
# The retry limit is short: a cluster's log server may be down while everything else works.
_SECONDS_FOR_LINES = 10.0
_NO_MORE = 416


@dataclass(frozen=True)
class LogPlace:
    """A position in a node's log: the attempts that the lines are of, and the number of bytes read."""

    job_attempt: int = 0
    task_attempt: int = 0
    offset: int = 0

    @property
    def attempts(self) -> tuple[int, int]:
        return self.job_attempt, self.task_attempt


class _PastTheEnd(Exception):  # noqa: N818 - it is how a read ends that found nothing new
    """The log has fewer bytes. `size`: its size, if the server sends it."""

    def __init__(self, size: int | None) -> None:
        super().__init__(size)
        self.size = size


def attempts_of(run: RunId, detail: JobDetail) -> LogPlace | None:
    """The beginning of the log of the task's last attempt. None if the task has none yet."""
    task = detail.tasks.get(run.task_key)
    number = task.get("attemptId") if task else None
    return LogPlace(detail.attempt, number) if type(number) is int else None


def last_task_lines(
    session: Session, call: Call, run: RunId, place: LogPlace, limit: int, patiently: bool
) -> list[str]:
    """The last lines of a node, oldest first."""

    def read() -> list[str]:
        address = _log_address(session, call, run, place, tail=True)
        answer = _read_log(session, call, address, {}) if address else None
        # The cluster returns the last bytes, so the first line may be incomplete.
        lines = whole_lines(_decode_log(answer.body).removesuffix("\n").split("\n")) if answer and answer.body else []
        return lines[-limit:]

    return look_for_lines(call, read, patiently, looks=4, seconds_between=1.0)


def text_after(session: Session, call: Call, run: RunId, place: LogPlace) -> tuple[list[str], str, LogPlace]:
    """The whole lines after a position, the beginning of the incomplete last line, and the position between them."""
    address = _log_address(session, call, run, place, tail=False)
    headers = {"Range": f"bytes={place.offset}-"} if place.offset else {}
    try:
        answer = _read_log(session, call, address, headers) if address else None
    except _PastTheEnd as end:
        # A log that was too long was rotated, and a new one begun.
        return [], "", replace(place, offset=0) if end.size is not None and end.size < place.offset else place
    if answer is None:
        return [], "", place
    # A server without support of ranges sends everything again.
    fresh = answer.body if answer.status == 206 or not place.offset else answer.body[place.offset :]
    *whole, rest = fresh.split(b"\n")
    return (
        [_decode_log(line) for line in whole],
        _decode_log(rest),
        replace(place, offset=place.offset + len(fresh) - len(rest)),
    )


def _read_log(session: Session, call: Call, address: str, headers: Mapping[str, str]) -> Answer | None:
    """The response. None if there is no log."""
    hurried = replace(call, patience=min(call.patience, _SECONDS_FOR_LINES))
    try:
        return attempt_on_cluster(hurried, "Read the run's log", lambda: session.send("GET", address, headers=headers))
    except ProviderError as error:
        cause = error.__cause__
        if isinstance(cause, ApiError) and cause.status == _NO_MORE:
            size = cause.content_range.rpartition("/")[2]
            raise _PastTheEnd(int(size) if size.isascii() and size.isdigit() else None) from None
        if isinstance(cause, ApiError) and cause.status == 404:
            return None
        raise


def _log_address(session: Session, call: Call, run: RunId, place: LogPlace, tail: bool) -> str | None:
    """The current address of the log. Addresses contain a token of the log server, which expires."""
    role, index = run.task_key
    path = job_path(
        run.user, run.job, "attempts", place.job_attempt, "taskRoles", role, "taskIndex", index,
        "attempts", place.task_attempt, "logs",
    )  # fmt: skip
    hurried = replace(call, patience=min(call.patience, _SECONDS_FOR_LINES))
    query = {"tail-mode": "true"} if tail else {}
    answer = ask_cluster_if_exists(session, hurried, "Read the run's log", path, **query)
    rows = answer.get("locations") if isinstance(answer, Mapping) else None
    pairs = ((row.get("name"), row.get("uri")) for row in rows or () if isinstance(row, Mapping))
    locations = {name: uri for name, uri in pairs if isinstance(name, str) and isinstance(uri, str)}
    return next((session.within(locations[name]) for name in _FILES if name in locations), None)


def _decode_log(body: bytes) -> str:
    return body.decode("utf-8", "replace")
