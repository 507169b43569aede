# SPDX-License-Identifier: Apache-2.0
"""The inputs that only runs on OCI have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from components.platform.calls import InputFailure
from components.platform.inputs import OwnInputs, RunInput
from components.platform.values import UNKNOWN, Properties

LAYOUTS = ("run-per-node", "node-groups")
_TEXT = {"type": "string"}
_NUMBER = {"type": "integer"}
_OF_GROUPS = ("replicas", "minimumSuccess")


def _input_failures_of_nodes(inputs: Properties) -> Iterator[InputFailure]:
    layout = inputs.get("layout")
    if layout not in (None, UNKNOWN, *LAYOUTS):
        yield InputFailure("layout", f"`{layout}` is not one of {', '.join(LAYOUTS)}.")
    if inputs.get("log") and not inputs.get("logGroup"):
        yield InputFailure("log", "`log` is given without its `logGroup`; give both.")
    if inputs.get("capacityReservation") and layout == "node-groups":
        yield InputFailure("capacityReservation", "Only job runs of one node start in a reservation.")
    nodes = inputs.get("nodes")
    for index, node in enumerate(nodes if isinstance(nodes, list) else ()):
        for key in _OF_GROUPS if isinstance(node, Mapping) else ():
            path = f"nodes[{index}].{key}"
            value = node.get(key)
            if layout == "run-per-node" and value not in (None, 1):
                yield InputFailure(path, "Only the layout `node-groups` has this. Here, list every node.")
            if value is not None and value is not UNKNOWN and (type(value) is not int or value <= 0):
                yield InputFailure(path, f"`{value}` is not a positive number.")


INPUTS = OwnInputs(
    inputs={
        "job": RunInput(_TEXT, required=True),
        "project": RunInput(_TEXT, required=True),
        "compartment": RunInput(_TEXT, required=True),
        "layout": RunInput({**_TEXT, "default": LAYOUTS[0]}, default=LAYOUTS[0]),
        "logGroup": RunInput(_TEXT),
        "log": RunInput(_TEXT),
        "capacityReservation": RunInput(_TEXT),
    },
    stands_on="job",
    node=dict.fromkeys(_OF_GROUPS, _NUMBER),
    failures=_input_failures_of_nodes,
)
