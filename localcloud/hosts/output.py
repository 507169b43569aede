# SPDX-License-Identifier: Apache-2.0
"""What a node prints: kept in the run's folder, and given line by line to its log, where the run may write to it."""

from __future__ import annotations

import uuid
from asyncio.subprocess import Process

from localcloud.api import clock
from localcloud.api.services.logs import RUN_OUTPUT, write_lines
from localcloud.api.store import Resource, Store
from localcloud.hosts.specification import output_path
from localcloud.hosts.workplace import Assignment, Node

_CHUNK = 64 * 1024
_ASKED_AGAIN_SECONDS = 1.0
MAXIMUM_LINE = 64 * 1024


class Sink:
    """Where the output of one node goes."""

    def __init__(self, store: Store, run: Resource, node: Node, assignment: Assignment) -> None:
        self._store = store
        self._run = run
        self._subject = f"{node.group}/{node.rank}" if node.group else str(node.rank)
        self._file = output_path(assignment.folder, node.rank)
        self._may_write = assignment.may_write_log
        self._refused_until = 0.0
        self._log = (run.body.get("logDetails") or {}).get("logId", "")

    async def drain(self, process: Process) -> None:
        """Until the last process of the node has closed its output."""
        if process.stdout is None:
            return
        pending = b""
        with self._file.open("ab") as file:
            while chunk := await process.stdout.read(_CHUNK):
                file.write(chunk)
                file.flush()
                *lines, pending = (pending + chunk).split(b"\n")
                if len(pending) > MAXIMUM_LINE:
                    lines, pending = [*lines, pending], b""
                self._give(lines)
            self._give([pending] if pending else [])

    def _give(self, lines: list[bytes]) -> None:
        moment = clock.now()
        if not lines or moment < self._refused_until or not (log := self._store.get(self._log)):
            return
        if not self._may_write(log):  # said in the server's log, so not for every line; a policy may come later
            self._refused_until = moment + _ASKED_AGAIN_SECONDS
            return
        texts = [(moment, str(uuid.uuid4()), line.rstrip(b"\r").decode(errors="replace")) for line in lines]
        with self._store.transaction():
            write_lines(self._store, self._log, self._run.id, self._subject, RUN_OUTPUT, texts)
