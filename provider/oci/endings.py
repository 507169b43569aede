# SPDX-License-Identifier: Apache-2.0
"""How a run ended, read from the status files that its launchers left in the bucket. Its job runs may be gone."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from provider.base.errors import ProviderError
from provider.base.resource import Call
from provider.oci import status_place
from provider.oci.calls import read_if_exists
from provider.oci.session import Session


def ending(session: Session, call: Call, main: str, nodes: Sequence[Mapping[str, Any]]) -> str | None:
    """FAILED if one rank says so, SUCCEEDED if every rank says how it ended. None if the files do not tell."""
    states = [_state(session, call, main, node, rank) for node in nodes for rank in _ranks(node)]
    if "failed" in states:
        return "FAILED"
    # A service is stopped when those it served have succeeded.
    return "SUCCEEDED" if "succeeded" in states and set(states) <= {"succeeded", "stopped"} else None


def _ranks(node: Mapping[str, Any]) -> Iterator[int]:
    first = int(node.get("rank") or 0)
    yield from range(first, first + int(node.get("replicas") or 1))


def _state(session: Session, call: Call, main: str, node: Mapping[str, Any], rank: int) -> str | None:
    variables = node.get("environment") or {}
    place = status_place.parse_folder(status_place.status_folder(status_place.launch_document(variables), main, {}))
    if place is None:
        return None
    client = session.client("object_storage")
    try:
        status = read_if_exists(
            call, "Read how the run ended", lambda: client.get_object(place.namespace, place.bucket, place.status(rank))
        )
        state = json.loads(status.content).get("state") if status is not None else None
    except (ProviderError, ValueError, AttributeError):
        # The bucket may be closed to us, or hold something else under this name. Then we do not know the state.
        return None
    return state if isinstance(state, str) else None
