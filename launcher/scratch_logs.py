# SPDX-License-Identifier: Apache-2.0
"""The ends of the logs that a framework wrote into its scratch folder. They go with the node, and `ray start` itself
says no more than that one of its processes ended."""

from __future__ import annotations

import os
from collections.abc import Iterator

from launcher.walking import Budget, open_file, regular_files

_SUFFIXES = (".err", ".log", ".out")
_FILES, _LINES, _BYTES = 8, 4, 4096
_ENTRIES, _SECONDS = 2000, 2.0


def ends(scratch: str) -> Iterator[str]:
    """The last lines of the logs that were written last, the newest first."""
    found = regular_files(scratch, lambda name, status, folder: True, Budget(_ENTRIES, _SECONDS))
    logs = [(status.st_mtime, name) for name, status in found if status.st_size and name.endswith(_SUFFIXES)]
    for _, name in sorted(logs, reverse=True)[:_FILES]:
        try:
            lines = _end(scratch, name)
        except OSError:
            continue  # its writer removed it
        yield f"the end of {name}:"
        yield from (f"  {line}" for line in lines)


def _end(scratch: str, name: str) -> list[str]:
    with os.fdopen(open_file(scratch, name), "rb") as log:
        log.seek(max(0, os.fstat(log.fileno()).st_size - _BYTES))
        return log.read().decode("utf-8", "replace").splitlines()[-_LINES:]
