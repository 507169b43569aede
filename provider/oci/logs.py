# SPDX-License-Identifier: Apache-2.0
"""The last lines of a run, from OCI Logging."""

from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

from provider.base.resource import Call
from provider.oci.calls import attempt
from provider.oci.session import Session

# Lines reach the search a moment after they are written.
_LOOKS = 5
_SECONDS_BETWEEN_LOOKS = 2.0
# The search takes at most two weeks at once.
_SPAN = timedelta(days=13)


def last_lines(session: Session, call: Call, run: Any, limit: int) -> list[str]:
    details = run.log_details
    if details is None or not details.log_id:
        return []
    place = f"{run.compartment_id}/{details.log_group_id}/{details.log_id}"
    query = f"search \"{place}\" | where source = '{run.id}' | sort by datetime desc"
    for look in range(_LOOKS):
        lines = _search(session, call, query, limit)
        if lines:
            return lines[::-1]
        if look + 1 < _LOOKS:
            call.report.status("waiting for the last log lines")
            call.stop.wait(_SECONDS_BETWEEN_LOOKS)
    return []


def _search(session: Session, call: Call, query: str, limit: int) -> list[str]:
    models = import_module("oci.loggingsearch.models")
    now = datetime.now(UTC)
    details = models.SearchLogsDetails(time_start=now - _SPAN, time_end=now + timedelta(minutes=5), search_query=query)
    client = session.client("log_search")
    found = attempt(call, "Read the run's log", lambda: client.search_logs(details, limit=limit)).data
    return [line for line in (_message(result.data) for result in found.results or []) if line is not None]


def _message(entry: Any) -> str | None:
    content = entry.get("logContent", entry) if isinstance(entry, dict) else {}
    data = content.get("data", content)
    message = data.get("message") if isinstance(data, dict) else data
    return str(message).rstrip() if message is not None else None
