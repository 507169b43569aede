# SPDX-License-Identifier: Apache-2.0
"""Where the launchers of a start say how they are doing: worked out of what its nodes were told."""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from provider.oci import job_runs

_URI = re.compile(r"oci://([^@/]+)@([^/]+)/(.+)")


class StatusFolder(NamedTuple):
    """A folder in a bucket."""

    namespace: str
    bucket: str
    prefix: str

    def status(self, rank: int) -> str:
        """The name of a rank's status object."""
        return f"{self.prefix}/status/{rank}.json"


def document(variables: Mapping[str, Any]) -> Mapping[str, Any]:
    """The launch document among a node's variables; empty where there is none that can be read."""
    try:
        read = json.loads(variables.get(job_runs.LAUNCH_VARIABLE, ""))
    except (ValueError, TypeError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def folder(told: Mapping[str, Any], run_id: str, variables: Mapping[str, Any]) -> str | None:
    """The folder of the start that a job run is of. Older launch documents name it beside the peers."""
    peers = told.get("peers")
    found = told.get("folder") or (peers.get("uri") if isinstance(peers, dict) else None)
    return f"{found}/{job_runs.start_of(run_id, variables)}" if isinstance(found, str) else None


def place(uri: str | None) -> StatusFolder | None:
    """Of `oci://bucket@namespace/prefix`; None for anything else."""
    parts = _URI.fullmatch(uri or "")
    return StatusFolder(parts[2], parts[1], parts[3]) if parts else None
