# SPDX-License-Identifier: Apache-2.0
"""What a run shows at its end: the nodes that tell how it went, their program's lines, and the files it left."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from components.plan.model import RunPlan
from components.platform.calls import ProviderError
from components.platform.status import shorten

# How many of a node's last lines are asked for, to find the program's own among them.
LINES_READ = 100
NOT_READ = "(what it printed could not be read just now)"
# What a program writes for people to see at a glance. A longer one is only named.
_RESULT = "result.json"
_LONGEST_BYTES = 2000
_MOST_NAMED = 20

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


def attempt_folder(run: RunPlan) -> str:
    """Where the starts of this attempt leave what they make, below the bucket. Empty if they leave nothing."""
    launch = run.nodes[0].launch if run.nodes else {}
    return str(launch.get("folder") or "").removeprefix("${bucket}/")


def named_results(listed: Callable[[], Sequence[tuple[str, int]]], read: Callable[[str], bytes]) -> Iterator[str]:
    """The files that a start has left, each with its size, and what its result says."""
    try:
        files = listed()
        for name, size in files[:_MOST_NAMED]:
            yield f"{name}, {size} bytes"
            if name.endswith(_RESULT) and size <= _LONGEST_BYTES:
                yield f"  {json.dumps(shorten(json.loads(read(name))), allow_nan=False)}"
        if len(files) > _MOST_NAMED:
            yield f"and {len(files) - _MOST_NAMED} more"
    except (ProviderError, OSError, ValueError, RecursionError):
        # The stack is up all the same.
        yield "(what it left could not be read just now)"
