# SPDX-License-Identifier: Apache-2.0
"""Writes the lines of a run's nodes into its log, as the run itself: only if its policies allow that."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

from localcloud.api import clock
from localcloud.api.services.logs import RUN_OUTPUT, write_lines
from localcloud.api.store import StateStore, StoredResource

_ASKED_AGAIN_SECONDS = 1.0


class NodeLog:
    """Where the lines of one node go."""

    def __init__(
        self, store: StateStore, run: StoredResource, subject: str, may_write: Callable[[StoredResource], bool]
    ) -> None:
        self._store = store
        self._run = run
        self._subject = subject
        self._may_write = may_write
        self._refused_until = 0.0
        self._log = (run.body.get("logDetails") or {}).get("logId", "")

    def give(self, lines: Sequence[bytes]) -> None:
        moment = clock.now()
        if not lines or moment < self._refused_until or not (log := self._store.get(self._log)):
            return
        if not self._may_write(
            log
        ):  # a policy may follow, so ask again later; each answer is a line of the server's log
            self._refused_until = moment + _ASKED_AGAIN_SECONDS
            return
        texts = [(moment, str(uuid.uuid4()), line.rstrip(b"\r").decode(errors="replace")) for line in lines]
        with self._store.transaction():
            write_lines(self._store, self._log, self._run.id, self._subject, RUN_OUTPUT, texts)
