# SPDX-License-Identifier: Apache-2.0
"""Finds the node that failed first in the nodes' last lines. The platform only sees that all nodes ended."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from components.platform.calls import Call
from components.platform.errors import ProviderError
from components.platform.run_platform import RunPlatform
from components.platform.runs import NodeRun
from launcher.escaping import terminal

# `[2.launcher] stopped: rank 1 (worker-0) failed with code 3`, as launcher/node.py writes it.
_LINE = re.compile(
    r"\[\d+\.launcher\] (?:stopped: )?(?P<why>rank \d+ \((?P<node>[^()\s]+)\) (?:failed|has failed|was lost)\b.*)"
)


class FirstFailure(NamedTuple):
    """The node that failed first, and the line that says so. `node` is None if it has no record of its own."""

    node: NodeRun | None
    words: str


def first_failure(lines: Iterable[str], nodes: Sequence[NodeRun]) -> FirstFailure | None:
    """None if no line names a node: then the writer itself failed first, or the image has another launcher."""
    matches = [match for match in map(_LINE.match, lines) if match]
    if not matches:
        return None
    named = {node.name: node for node in nodes}
    return FirstFailure(named.get(matches[-1]["node"]), terminal(matches[-1]["why"]))


class LastLines:
    """The last lines of nodes, read once each."""

    def __init__(self, call: Call, platform: RunPlatform, limit: int) -> None:
        self._call, self._platform, self._limit = call, platform, limit
        self._read: dict[str, list[str] | ProviderError] = {}

    def of(self, node: NodeRun) -> list[str]:
        """Empty where they cannot be read."""
        if node.id not in self._read:
            try:
                self._read[node.id] = self._platform.last_lines(self._call, node, self._limit)
            except ProviderError as error:
                self._read[node.id] = error
        lines = self._read[node.id]
        return [] if isinstance(lines, ProviderError) else lines

    def quoted(self, node: NodeRun, who: str) -> list[str]:
        """The lines as the message of a failed run shows them."""
        lines, result = self.of(node), self._read[node.id]
        if isinstance(result, ProviderError):
            return [f"Its log could not be read: {result.cause}"]
        whose = f" ({node.name})" if who else ""
        quoted = (f"  {terminal(line)}" for line in lines)
        return [f"Its last lines{whose}:", *quoted] if lines else ["It wrote no log lines."]
