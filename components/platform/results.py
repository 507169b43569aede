# SPDX-License-Identifier: Apache-2.0
"""What `up` shows of a run at its end: the last lines of its main nodes, and the files that it left."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from components.plan.model import RunPlan
from components.platform.calls import ProviderError
from components.platform.status import shorten

# Lines read from the end of a node's log, to find the program's own among them.
LINES_READ = 100
NOT_READ = "(what it printed could not be read just now)"
# A result that a program writes for people. It is shown whole if it is short.
_RESULT = "result.json"
_LONGEST_BYTES = 2000
_MOST_NAMED = 20

# The prefixes of the launcher's own lines and of lines of the framework's services.
_LAUNCHER = re.compile(r"^\[\d+\.launcher\] ")
# The first line of its warning about files that are lost with the node (launcher/losses.py).
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
    """The launcher's warning about files that are lost with the node."""
    spoken = [_LAUNCHER.sub("", line) for line in printed if _LAUNCHER.match(line)]
    first = next((number for number, line in enumerate(spoken) if line.endswith(_LOST)), len(spoken))
    last = next((number for number in range(first + 1, len(spoken)) if not spoken[number].startswith("  ")), first)
    return spoken[first : last + 1]


def attempt_folder(run: RunPlan) -> str:
    """The folder of this attempt in the bucket, where its starts keep their files. Empty if they keep none."""
    launch = run.nodes[0].launch if run.nodes else {}
    return str(launch.get("folder") or "").removeprefix("${bucket}/")


def named_results(listed: Callable[[], Sequence[tuple[str, int]]], read: Callable[[str], bytes]) -> Iterator[str]:
    """Lines about the files that a start has left, with sizes, and its result."""
    try:
        files = listed()
        for name, size in files[:_MOST_NAMED]:
            yield f"{name}, {size} bytes"
            if name.endswith(_RESULT) and size <= _LONGEST_BYTES:
                yield f"  {json.dumps(shorten(json.loads(read(name))), allow_nan=False)}"
        if len(files) > _MOST_NAMED:
            yield f"and {len(files) - _MOST_NAMED} more"
    except (ProviderError, OSError, ValueError, RecursionError):
        # This is not an error of `up`: the stack is up.
        yield "(what it left could not be read just now)"
