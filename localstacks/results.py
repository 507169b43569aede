# SPDX-License-Identifier: Apache-2.0
"""Which nodes of a run show how it went, and which of their lines the team's program printed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from components.plan.model import RunPlan

# The launcher's marks on its own lines and on those of the framework's services.
_LAUNCHER = re.compile(r"^\[\d+\.launcher\] ")
# The first of its lines about files that go with the node (launcher/losses.py). The last one says how to keep them.
_LOST = "that training made will be lost with this node:"
_BESIDE = re.compile(r"^\[\d+(\.\w+)*\.(service|rendezvous|launcher)\] ")


def reporting_nodes(run: RunPlan, nodes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The nodes whose last lines show how the run went: they run the team's program, or they failed."""
    commanding = {node.name for node in run.nodes if node.launch.get("command")}
    return [node for node in nodes if node["name"] in commanding or node["state"] == "FAILED"]


def own_lines(printed: Sequence[str]) -> list[str]:
    """The lines of the team's own program. All lines if it printed none."""
    return [line for line in printed if not _BESIDE.match(line)] or list(printed)


def lost_lines(printed: Sequence[str]) -> list[str]:
    """What the launcher said of files that nobody keeps."""
    spoken = [_LAUNCHER.sub("", line) for line in printed if _LAUNCHER.match(line)]
    first = next((number for number, line in enumerate(spoken) if line.endswith(_LOST)), len(spoken))
    last = next((number for number in range(first + 1, len(spoken)) if not spoken[number].startswith("  ")), first)
    return spoken[first : last + 1]
