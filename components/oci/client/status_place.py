# SPDX-License-Identifier: Apache-2.0
"""Finds the folder of a start's status files from the launch document of its nodes."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from components.oci.client import job_runs
from components.platform.launch import folder_of

_URI = re.compile(r"oci://([^@/]+)@([^/]+)/(.+)")


class StatusFolder(NamedTuple):
    """A folder in a bucket."""

    namespace: str
    bucket: str
    prefix: str

    def status(self, rank: int) -> str:
        """The name of a rank's status object."""
        return f"{self.prefix}/status/{rank}.json"


def status_folder(launch: Mapping[str, Any], run_id: str, variables: Mapping[str, Any]) -> str | None:
    """The folder of the start that a job run belongs to."""
    uri = folder_of(launch)
    return f"{uri}/{job_runs.start_of(run_id, variables)}" if uri is not None else None


def parse_folder(uri: str | None) -> StatusFolder | None:
    """Reads `oci://bucket@namespace/prefix`. None for any other text."""
    parts = _URI.fullmatch(uri or "")
    return StatusFolder(parts[2], parts[1], parts[3]) if parts else None
