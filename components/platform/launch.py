# SPDX-License-Identifier: Apache-2.0
"""What the launch documents of a run's nodes say, and how its launchers say that they ended."""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

# The variable of a node that has its launch document.
LAUNCH_VARIABLE = "TRAINYARD_LAUNCH"
# As stack files have it: a document that asks for more was not written by a stack.
_MOST_REPLICAS = 10_000


def launch_document(variables: Any) -> Mapping[str, Any]:
    """The launch document in a node's variables. Empty if there is none, or if it cannot be read."""
    try:
        launch = json.loads(variables.get(LAUNCH_VARIABLE, ""))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}
    return launch if isinstance(launch, dict) else {}


def folder_of(launch: Mapping[str, Any]) -> str | None:
    """The folder of a run's starts. Older launch documents name it beside the peers."""
    peers = launch.get("peers")
    uri = launch.get("folder") or (peers.get("uri") if isinstance(peers, dict) else None)
    # No client takes halves of letters and control characters, and no stack has them.
    return uri if isinstance(uri, str) and uri.isprintable() else None


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


def ranks_of_node(node: Mapping[str, Any]) -> Iterator[int]:
    """The ranks that one element of a run's `nodes` stands for."""
    first = int(node.get("rank") or 0)
    yield from range(first, first + int(node.get("replicas") or 1))


def ending_of(states: Collection[str | None]) -> str | None:
    """FAILED if one rank says so, SUCCEEDED if every rank says how it ended. None if the files do not tell."""
    if "failed" in states:
        return "FAILED"
    # A service is stopped when those it served have succeeded.
    return "SUCCEEDED" if "succeeded" in states and set(states) <= {"succeeded", "stopped"} else None


def state_in(content: bytes | str) -> str | None:
    """The state in a status file; None where it is none."""
    try:
        state = json.loads(content).get("state")
    except (ValueError, AttributeError, RecursionError):
        return None
    return state if isinstance(state, str) else None
