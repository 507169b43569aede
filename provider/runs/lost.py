# SPDX-License-Identifier: Apache-2.0
"""What a run's nodes report at its end: files of the training that were not kept, and the node that failed first.

Anybody who may write to the bucket may write such an object. So only few, short parts of it are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from components.platform.calls import Call, ProviderError
from components.platform.client import Runs
from components.platform.runs import NodeRun, is_blank_line
from launcher.escaping import terminal_line
from launcher.losses import count_files, format_size

_MOST_NAMED, _LONGEST, _LARGEST = 10, 300, 2**53
# The keys of a rank's status, and what happens to the files.
LOST, LOCAL_ONLY = "lost", "localOnly"
_FATES = {LOST: "not kept", LOCAL_ONLY: "kept only here, lost on a real cloud"}
# `[2.launcher] stopped: rank 1 (worker-0) failed with code 3`, as launcher/node.py writes it.
_LINE = re.compile(
    r"\[\d+\.launcher\] (?:stopped: )?(?P<why>rank \d+ \((?P<node>[^()\s]+)\) (?:failed|has failed|was lost)\b.*)"
)


@dataclass(frozen=True, slots=True)
class LostFile:
    """A file, or a folder of `files`."""

    name: str
    size: int
    files: int
    why: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The files that one rank did not keep: their total, the largest by name, and how to keep such files."""

    files: int
    size: int
    largest: tuple[LostFile, ...] = ()
    remedy: str = ""


def read_lost(status: Mapping[str, Any] | None, key: str = LOST) -> Lost | None:
    """None if all files were kept, or if the rank has not reported yet."""
    row = (status or {}).get(key)
    if not isinstance(row, Mapping) or not _valid_count(row.get("files")):
        return None
    rows = row.get("largest")
    named = [row for row in (rows if isinstance(rows, list) else [])[:_MOST_NAMED] if isinstance(row, Mapping)]
    largest = [
        LostFile(
            _valid_text(file, "name"), _valid_count(file.get("bytes")), _valid_count(file.get("files")),
            _valid_text(file, "why"),
        )
        for file in named
    ]  # fmt: skip
    return Lost(_valid_count(row["files"]), _valid_count(row.get("bytes")), tuple(largest), _valid_text(row, "remedy"))


def total_words(statuses: Iterable[Mapping[str, Any] | None]) -> str:
    """The files of one rank, or of several together, that were not kept, or that only the local cloud keeps. Empty if
    all files are kept."""
    reported = list(statuses)
    return "; ".join(filter(None, (_total_of_fate(reported, key, fate) for key, fate in _FATES.items())))


def _total_of_fate(statuses: Iterable[Mapping[str, Any] | None], key: str, fate: str) -> str:
    found = [lost for status in statuses if (lost := read_lost(status, key)) is not None]
    files, size = sum(lost.files for lost in found), sum(lost.size for lost in found)
    return f"{count_files(files)} ({format_size(size)}) {fate}" if files else ""


def _valid_count(value: Any) -> int:
    return value if type(value) is int and 0 <= value <= _LARGEST else 0


def _valid_text(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    return value[:_LONGEST] if isinstance(value, str) else ""


class FirstFailure(NamedTuple):
    """The node that failed first, and its line. `node` is None if it has no record of its own."""

    node: NodeRun | None
    words: str


def first_failure(lines: Iterable[str], nodes: Sequence[NodeRun]) -> FirstFailure | None:
    """None if no line names a node: then the writer itself failed first, or the image has another launcher."""
    matches = [match for match in map(_LINE.match, lines) if match]
    if not matches:
        return None
    named = {node.name: node for node in nodes}
    return FirstFailure(named.get(matches[-1]["node"]), terminal_line(matches[-1]["why"]))


class LastLines:
    """The last lines of nodes, read once each."""

    def __init__(self, call: Call, runs: Runs, limit: int) -> None:
        self._call, self._runs, self._limit = call, runs, limit
        self._read: dict[str, list[str] | ProviderError] = {}

    def of(self, node: NodeRun) -> list[str]:
        """The last lines of a node. Empty if they cannot be read."""
        if node.id not in self._read:
            try:
                self._read[node.id] = self._runs.last_lines(self._call, node, self._limit)
            except ProviderError as error:
                self._read[node.id] = error
        lines = self._read[node.id]
        return [] if isinstance(lines, ProviderError) else lines

    def quoted(self, node: NodeRun, who: str) -> list[str]:
        """The lines in the form for the message about a failed run."""
        lines, result = self.of(node), self._read[node.id]
        if isinstance(result, ProviderError):
            return [f"Its log could not be read: {result.cause}"]
        whose = f" ({node.name})" if who else ""
        quoted = [f"  {terminal_line(line)}" for line in lines if not is_blank_line(line)]
        return [f"Its last lines{whose}:", *quoted] if quoted else ["It wrote no log lines."]
