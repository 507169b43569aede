# SPDX-License-Identifier: Apache-2.0
"""Which nodes of a run tell how it went, and which of their lines the team's own program printed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from components.plan.model import RunPlan

# As the launcher marks what its framework's services and it itself print, beside the team's program.
_BESIDE = re.compile(r"^\[\d+(\.\w+)*\.(service|rendezvous|launcher)\] ")


def speaking(run: RunPlan, nodes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The nodes whose last lines tell how it went: those that run the team's program, and those that failed."""
    commanding = {node.name for node in run.nodes if node.launch.get("command")}
    return [node for node in nodes if node["name"] in commanding or node["state"] == "FAILED"]


def own_lines(printed: Sequence[str]) -> list[str]:
    """What the team's own program printed; everything, where it printed nothing."""
    return [line for line in printed if not _BESIDE.match(line)] or list(printed)
