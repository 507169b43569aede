# SPDX-License-Identifier: Apache-2.0
"""What a run printed last, read back from the cloud's logging as anybody would."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from localcloud.control import Cloud

# Enough to see that it trained and how it ended.
LAST = 4


def last_lines(cloud: Cloud, group: str | None, log: str | None, run: str) -> list[str]:
    """The last lines of a run, oldest first; none where the stack keeps no logs."""
    if not group or not log:
        return []
    from oci.config import from_file
    from oci.exceptions import RequestException, ServiceError
    from oci.loggingsearch import LogSearchClient
    from oci.loggingsearch.models import SearchLogsDetails

    client = LogSearchClient(from_file(str(cloud.config_file), "deployer"), service_endpoint=cloud.endpoint)
    now = datetime.now(UTC)
    query = f"search \"{cloud.compartment}/{group}/{log}\" | where source = '{run}' | sort by datetime desc"
    wanted = SearchLogsDetails(
        time_start=now - timedelta(days=1), time_end=now + timedelta(minutes=1), search_query=query
    )
    try:
        found = client.search_logs(wanted, limit=LAST).data.results or []
    except (ServiceError, RequestException):
        # The stack is up all the same.
        return ["(what it printed could not be read just now)"]
    return [str(one.data["logContent"]["data"]["message"]) for one in reversed(found)]
