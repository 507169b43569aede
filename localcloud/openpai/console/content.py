# SPDX-License-Identifier: Apache-2.0
"""What is inside of a run: what its launchers say on a storage, and the ends of its tasks' logs."""

from __future__ import annotations

import os
from collections.abc import Iterator

from components.openpai.protocol.text import exit_of
from localcloud.console.platform import LINES, LONGEST_LINE, Points, RunContent, shown_lines
from localcloud.oci.manifests import UnreadableManifestError, open_regular_file
from localcloud.openpai.attempts import log_folder
from localcloud.openpai.console.runs import OpenPaiRun
from localcloud.openpai.observing import read_status
from localcloud.openpai.rest import Parts
from localcloud.server import http

_FILE = "all"  # both streams, as the task wrote them
_TAIL_BYTES = 64 * 1024


def content_of(parts: Parts, run: OpenPaiRun, points: Points) -> RunContent:
    statuses = {node.rank: read_status(parts.home, run.place, node.rank) for node in run.nodes} if run.place else {}
    return RunContent(_facts(parts, run), statuses, points, list(_printed(parts, run)))


def _facts(parts: Parts, run: OpenPaiRun) -> list[list[str]]:
    job = run.job
    facts = [["job", job.name], ["virtual cluster", job.cluster], ["submitted", http.rfc3339(job.submitted)]]
    for attempt in parts.store.attempts(job.name)[-LINES:]:
        end = attempt.end
        words = (
            f"ended with {exit_of(end.code).text}; {end.trigger or end.details}"[:LONGEST_LINE] if end else "goes on"
        )
        facts.append([f"attempt {attempt.number + 1}", f"{http.rfc3339(attempt.started)} {words}"])
    return facts


def _printed(parts: Parts, run: OpenPaiRun) -> Iterator[str]:
    """The last lines of each rank. Logs of OpenPAI have no times, so rank follows rank."""
    written = [node for node in run.nodes if run.logs.get(node.rank)][:LINES]
    for node in written:
        mark = f"[{node.run.name}] "
        entries = ((node.rank, line.removeprefix(mark)) for line in _tail(parts, run.logs[node.rank]))
        yield from shown_lines(run, entries)[-max(1, LINES // len(written)) :]


def _tail(parts: Parts, attempt: str) -> list[str]:
    try:
        with open_regular_file(log_folder(parts.home, attempt) / _FILE) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            lines = file.read(_TAIL_BYTES).decode("utf-8", "replace").removesuffix("\n").split("\n")
    except (OSError, UnreadableManifestError):
        return []
    # The first one may be a part of a line.
    return lines[1:] if size > _TAIL_BYTES else lines
