# SPDX-License-Identifier: Apache-2.0
"""Who uses the local cloud of a folder: several commands may, and only the last of them stops it.

Each command holds a shared lock as long as it lives, also if it is killed. Who wants to stop the cloud needs the lock
alone, and keeps it until the cloud has stopped: no command begins on a cloud that is about to go.
"""

from __future__ import annotations

import fcntl
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from components.platform.calls import Tell
from trainyard.engine.trusted import open_lock


class CloudUse:
    """One command's use of the cloud."""

    def __init__(self, home: Path, tell: Tell) -> None:
        with open_lock(home / "cloud-use.lock") as opened:
            self._lock = os.dup(opened.fileno())
        weakref.finalize(self, os.close, self._lock)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("Another command is stopping the local cloud: waiting until it has.")
            fcntl.flock(self._lock, fcntl.LOCK_SH)

    @contextmanager
    def end(self) -> Iterator[bool]:
        """Whether no other command uses the cloud; if so, none begins before the end of the block."""
        try:
            # Of several that end at once, each gives up its share first, so the last one has the lock alone.
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
            fcntl.flock(self._lock, fcntl.LOCK_UN)
