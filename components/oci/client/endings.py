# SPDX-License-Identifier: Apache-2.0
"""How a run ended, read from the status files that its launchers left in the bucket. Its job runs may be gone."""

from collections.abc import Mapping, Sequence
from typing import Any

from components.oci.client import status_place
from components.oci.client.calls import read_if_exists
from components.oci.client.session import Session
from components.platform.calls import Call
from components.platform.errors import ProviderError
from components.platform.launch import ending_of, launch_document, ranks_of_node, state_in


def ending(session: Session, call: Call, main: str, nodes: Sequence[Mapping[str, Any]]) -> str | None:
    """None if the files do not tell."""
    return ending_of([_state(session, call, main, node, rank) for node in nodes for rank in ranks_of_node(node)])


def _state(session: Session, call: Call, main: str, node: Mapping[str, Any], rank: int) -> str | None:
    variables = node.get("environment") or {}
    place = status_place.parse_folder(status_place.status_folder(launch_document(variables), main, {}))
    if place is None:
        return None
    client = session.client("object_storage")
    try:
        status = read_if_exists(
            call, "Read how the run ended", lambda: client.get_object(place.namespace, place.bucket, place.status(rank))
        )
    except ProviderError:
        # The bucket may be closed to us. Then we do not know the state.
        return None
    return state_in(status.content) if status is not None else None
