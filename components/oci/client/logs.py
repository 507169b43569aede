# SPDX-License-Identifier: Apache-2.0
"""Reads the lines that runs printed, from OCI Logging."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from components.oci.client.calls import call_oci
from components.oci.client.session import Session, sdk_module
from components.platform.calls import Call, ProviderError, read_at_once
from components.platform.log_lines import ENTRIES_OF_A_LINE, LogMerger, look_for_lines, name_of_node
from components.platform.status import NodeStatus, RunStatus
from launcher.redraws import whole_lines

# The longest period of one search.
SPAN = timedelta(days=13)
# Added to the end of a search, so that the newest lines show even if our clock is behind the service's.
_AHEAD = timedelta(minutes=5)
_PAGE = 500
# Runs in one query: the length of a query is limited.
_SOURCES = 20
# Nodes whose last lines are searched alone, and the most entries that one search returns.
_ALONE, _MOST_ENTRIES = 8, 1000
# The longest time between a line's own timestamp and its appearance in the search.
_LATE = timedelta(seconds=90)


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a log. `time` is milliseconds since 1970, `source` the run, `subject` its node (for node groups)."""

    time: int
    id: str
    source: str
    subject: str
    text: str


def last_lines_of_job_run(session: Session, call: Call, run: Any, limit: int, patiently: bool) -> list[str]:
    """The last lines of a job run, oldest first."""
    place = log_of_job_run(run)
    if place is None:
        return []
    query = f"search \"{place}\" | where source = '{run.id}' | sort by datetime desc"

    def read() -> list[str]:
        lines = _page_of_lines(session, call, query, datetime.now(UTC) - SPAN, limit * ENTRIES_OF_A_LINE)[0]
        return whole_lines(line.text for line in lines[::-1])[-limit:]

    return look_for_lines(call, read, patiently)


def last_lines_of_nodes(
    session: Session, call: Call, nodes: Sequence[NodeStatus], limit: int
) -> list[list[str] | ProviderError]:
    """The last lines of each node. The first nodes get a search each. The others share searches, because 64 of them
    take seconds; nodes that such a search does not show, because others wrote more, get their own."""

    def read(part: Sequence[NodeStatus]) -> Mapping[str, list[str] | ProviderError]:
        wanted = " or ".join(f"source = '{node.run.id}'" for node in part)
        query = f'search "{part[0].log}" | where {wanted} | sort by datetime desc'
        entries = limit * ENTRIES_OF_A_LINE if len(part) == 1 else _MOST_ENTRIES
        try:
            lines = _page_of_lines(session, call, query, datetime.now(UTC) - SPAN, entries)[0]
        except ProviderError as error:
            return {node.run.id: error for node in part}
        texts: dict[str, list[str]] = {}
        for line in reversed(lines):
            texts.setdefault(line.source, []).append(line.text)
        return {source: whole_lines(of_node)[-limit:] for source, of_node in texts.items()}

    parts, others = [[node] for node in nodes[:_ALONE]], nodes[_ALONE:]
    for log in dict.fromkeys(node.log for node in others):
        same = [node for node in others if node.log == log]
        parts += [same[start : start + _SOURCES] for start in range(0, len(same), _SOURCES)]
    found = {source: lines for part in read_at_once(read, parts, _ALONE) for source, lines in part.items()}
    unseen = [[node] for node in others if node.run.id not in found]
    found |= {source: lines for part in read_at_once(read, unseen, _ALONE) for source, lines in part.items()}
    return [found.get(node.run.id, []) for node in nodes]


def log_of_job_run(run: Any) -> str | None:
    """The log of a job run in the syntax of a search. None for a run without a log."""
    details = run.log_details
    if details is None or not details.log_id:
        return None
    return f"{run.compartment_id}/{details.log_group_id}/{details.log_id}"


def lines_since(session: Session, call: Call, place: str, sources: Sequence[str], since: datetime) -> Iterator[LogLine]:
    """Every line that these job runs wrote into one log since `since`. Each batch of runs is sorted by time."""
    since = max(since, datetime.now(UTC) - SPAN)
    for start in range(0, len(sources), _SOURCES):
        wanted = " or ".join(f"source = '{source}'" for source in sources[start : start + _SOURCES])
        query = f'search "{place}" | where {wanted} | sort by datetime asc'
        page: str | None = None
        while True:
            lines, page = _page_of_lines(session, call, query, since, _PAGE, page)
            yield from lines
            if not page:
                break


def first_log_entries(
    session: Session, call: Call, query: str, what: str, since: datetime, most: int
) -> Iterator[Mapping[str, Any]]:
    """The first entries of a search, each with OCI's envelope around its data."""
    since = max(since, datetime.now(UTC) - SPAN)
    page: str | None = None
    while most > 0:
        found, page = _search_logs(session, call, query, what, since, min(most, _PAGE), page)
        yield from (entry.get("logContent", entry) for entry in found if isinstance(entry, dict))
        most = most - _PAGE if page else 0


def _page_of_lines(
    session: Session, call: Call, query: str, since: datetime, limit: int, page: str | None = None
) -> tuple[list[LogLine], str | None]:
    found, following = _search_logs(session, call, query, "Read the run's log", since, limit, page)
    return [line for line in map(_line_of_entry, found) if line is not None], following


def _search_logs(
    session: Session, call: Call, query: str, what: str, since: datetime, limit: int, page: str | None
) -> tuple[list[Any], str | None]:
    details = sdk_module("loggingsearch.models").SearchLogsDetails(
        time_start=since, time_end=datetime.now(UTC) + _AHEAD, search_query=query
    )
    client = session.client("log_search")
    options: dict[str, Any] = {"limit": limit, **({"page": page} if page else {})}
    answer = call_oci(call, what, partial(client.search_logs, details, **options))
    return [result.data for result in answer.data.results or []], answer.headers.get("opc-next-page")


def _line_of_entry(entry: Any) -> LogLine | None:
    if not isinstance(entry, dict):
        return None
    content = entry.get("logContent", entry)
    data = content.get("data", content)
    message = data.get("message") if isinstance(data, dict) else data
    if message is None:
        return None
    identifier, source, subject = (str(content.get(name) or "") for name in ("id", "source", "subject"))
    return LogLine(int(entry.get("datetime") or 0), identifier, source, subject, str(message).rstrip())


@dataclass
class OciLogMerger(LogMerger):
    session: Session
    call: Call
    _until: datetime | None = None
    _given: set[str] = field(default_factory=set)

    def new(self, runs: Iterable[RunStatus]) -> Iterator[str]:
        named: dict[tuple[str, str], str] = {}
        places: dict[str, dict[str, None]] = {}
        oldest = datetime.now(UTC)
        for run in runs:
            oldest = min(oldest, run.created)
            for node in run.nodes:
                if node.log is not None:
                    # A line names its job run. In node groups, it names the group and rank beside it.
                    shared = len({other.run.id for other in run.nodes}) < len(run.nodes)
                    named[node.run.id, f"{node.role}/{node.rank}" if shared else ""] = name_of_node(node)
                    places.setdefault(node.log, {})[node.run.id] = None
        since, self._until = self._until or oldest - _LATE, datetime.now(UTC)
        lines: list[LogLine] = []
        for place, sources in places.items():
            lines += lines_since(self.session, self.call, place, list(sources), since - _LATE)
        for line in sorted(lines, key=lambda line: line.time):
            if line.id not in self._given:
                self._given.add(line.id)
                name = find_node_name(line, named)
                if not self.ranks or name.startswith(tuple(f"{rank} " for rank in self.ranks)):
                    yield from self.add(name, line.text)


def find_node_name(line: LogLine, named: Mapping[tuple[str, str], str]) -> str:
    return named.get((line.source, "")) or named.get((line.source, line.subject)) or line.subject or "?"
