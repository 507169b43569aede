# SPDX-License-Identifier: Apache-2.0
"""Finds the folder of a start's status files from the launch document of its nodes."""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from provider.oci import job_runs

_URI = re.compile(r"oci://([^@/]+)@([^/]+)/(.+)")
# As stack files have it: a document that asks for more was not written by a stack.
_MOST_REPLICAS = 10_000


class StatusFolder(NamedTuple):
    """A folder in a bucket."""

    namespace: str
    bucket: str
    prefix: str

    def status(self, rank: int) -> str:
        """The name of a rank's status object."""
        return f"{self.prefix}/status/{rank}.json"


def launch_document(variables: Mapping[str, Any]) -> Mapping[str, Any]:
    """The launch document in a node's variables. Empty if there is none, or if it cannot be read."""
    try:
        launch = json.loads(variables.get(job_runs.LAUNCH_VARIABLE, ""))
    except (ValueError, TypeError, RecursionError):
        return {}
    return launch if isinstance(launch, dict) else {}


def status_folder(launch: Mapping[str, Any], run_id: str, variables: Mapping[str, Any]) -> str | None:
    """The folder of the start that a job run belongs to. Older launch documents name it beside the peers."""
    peers = launch.get("peers")
    uri = launch.get("folder") or (peers.get("uri") if isinstance(peers, dict) else None)
    return f"{uri}/{job_runs.start_of(run_id, variables)}" if isinstance(uri, str) else None


def parse_folder(uri: str | None) -> StatusFolder | None:
    """Reads `oci://bucket@namespace/prefix`. None for any other text."""
    parts = _URI.fullmatch(uri or "")
    return StatusFolder(parts[2], parts[1], parts[3]) if parts else None


def ranks_of(document: Mapping[str, Any]) -> tuple[int, ...]:
    """Those of the document's role: ranks follow the order of roles. Empty where the document is none of ours."""
    first = 0
    try:
        for role in document.get("roles", ()):
            replicas = min(int(role["replicas"]), _MOST_REPLICAS)
            if role["name"] == document.get("role"):
                return tuple(range(first, first + replicas))
            first += replicas
    except (KeyError, TypeError, ValueError):
        return ()
    return ()
