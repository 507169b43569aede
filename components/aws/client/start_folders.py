# SPDX-License-Identifier: Apache-2.0
"""Folders of starts in a bucket, with the status object of each rank."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from components.platform.calls import Call, ProviderError
from components.platform.runs import folder_of, read_launch_document, state_in
from components.platform.status import LONGEST_BYTES
from components.s3 import Session, read_from_aws_if_exists

_URI = re.compile(r"s3://([^/]+)/(.+)")


class StatusFolder(NamedTuple):
    """A folder in a bucket."""

    bucket: str
    prefix: str

    def status(self, rank: int) -> str:
        """The name of a rank's status object."""
        return f"{self.prefix}/status/{rank}.json"


def parse_s3_folder(uri: str | None) -> StatusFolder | None:
    """Reads `s3://bucket/prefix`. None for any other text."""
    parts = _URI.fullmatch(uri or "")
    return StatusFolder(parts[1], parts[2]) if parts else None


def start_folder_uri(launch: Mapping[str, Any], start: str) -> str | None:
    """The folder of a start."""
    uri = folder_of(launch)
    return f"{uri}/{start}" if uri is not None else None


def read_ended_state(session: Session, call: Call, start: str, node: Mapping[str, Any], rank: int) -> str | None:
    """The last state of a rank whose records are gone. None if its objects do not show it."""
    place = parse_s3_folder(start_folder_uri(read_launch_document(node.get("environment") or {}), start))
    if place is None:
        return None
    try:
        content = read_status_object(session, call, "Read how the run ended", place, rank)
    except ProviderError:
        # We may have no access to the bucket. Then the state is not known.
        return None
    return state_in(content) if content is not None else None


def read_status_object(session: Session, call: Call, what: str, place: StatusFolder, rank: int) -> bytes | None:
    """The status object of a rank. None if it does not exist yet."""
    client = session.client("s3")

    def read() -> bytes:
        with client.get_object(Bucket=place.bucket, Key=place.status(rank))["Body"] as body:
            content: bytes = body.read(LONGEST_BYTES)
            return content

    return read_from_aws_if_exists(call, what, read)
