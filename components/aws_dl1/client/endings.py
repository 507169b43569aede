# SPDX-License-Identifier: Apache-2.0
"""How a run ended, read from the status files that its launchers left in the bucket. Its ticket may be gone."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from components.aws_dl1.client.tickets import RunId
from components.platform.calls import Call
from components.platform.errors import ProviderError
from components.platform.launch import ending_of, folder_of, launch_document, ranks_of_node, state_in
from components.s3.calls import read_if_exists
from components.s3.session import Session

_URI = re.compile(r"s3://([^/]+)/(.+)")
# A status file is far shorter.
_LONGEST_BYTES = 64 * 1024


class StatusFolder(NamedTuple):
    """A folder in a bucket."""

    bucket: str
    prefix: str

    def status(self, rank: int) -> str:
        """The name of a rank's status object."""
        return f"{self.prefix}/status/{rank}.json"


def parse_folder(uri: str | None) -> StatusFolder | None:
    """Reads `s3://bucket/prefix`. None for any other text."""
    parts = _URI.fullmatch(uri or "")
    return StatusFolder(parts[1], parts[2]) if parts else None


def start_folder(launch: Mapping[str, Any], start: str) -> str | None:
    """The folder of a start."""
    uri = folder_of(launch)
    return f"{uri}/{start}" if uri is not None else None


def ending(session: Session, call: Call, run_id: str, nodes: Sequence[Mapping[str, Any]]) -> str | None:
    """None if the files do not tell."""
    run = RunId.parse(run_id)
    if run is None:
        return None
    start = f"s{run.number:08}"
    return ending_of([_state(session, call, start, node, rank) for node in nodes for rank in ranks_of_node(node)])


def _state(session: Session, call: Call, start: str, node: Mapping[str, Any], rank: int) -> str | None:
    place = parse_folder(start_folder(launch_document(node.get("environment") or {}), start))
    if place is None:
        return None
    client = session.client("s3")

    def read() -> bytes:
        with client.get_object(Bucket=place.bucket, Key=place.status(rank))["Body"] as body:
            content: bytes = body.read(_LONGEST_BYTES)
            return content

    try:
        content = read_if_exists(call, "Read how the run ended", read)
    except ProviderError:
        # The bucket may be closed to us. Then we do not know the state.
        return None
    return state_in(content) if content is not None else None
