# SPDX-License-Identifier: Apache-2.0
"""Recognises a known problem in a log file, by the rows of catalog/symptoms.toml and those of the team."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from components.platform.calls import ProviderError
from trainyard.why.symptoms import (
    LAUNCHER,
    MOST_CHARACTERS,
    OUTPUT,
    PLATFORM,
    FoundSymptom,
    Symptom,
    bound_lines,
    find_symptom,
)

# Of a longer log the end is read.
_LONGEST = 8 << 20


def find_symptom_in_log(file: Path, rows: Iterable[Symptom]) -> FoundSymptom | None:
    """The known text that is nearest to the end. Raises ProviderError if the file cannot be read."""
    known = tuple(rows)
    lines = _last_lines(file)
    while lines:
        part = list(bound_lines(lines)) or lines[-1:]
        for source in (OUTPUT, LAUNCHER, PLATFORM):
            if found := find_symptom(part, known, source):
                return found
        lines = lines[: -len(part)]
    return None


def _last_lines(file: Path) -> list[str]:
    try:
        # Opened without waiting, since a pipe may have no writer.
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as opened:
            found = os.fstat(opened.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise ProviderError(f"{file} is not a file", "Name a file with the log, such as `… > log.txt 2>&1`")
            opened.seek(max(0, found.st_size - _LONGEST))
            text = opened.read(_LONGEST).decode("utf-8", "replace")
    except OSError as error:
        raise ProviderError(f"{file} cannot be read: {error.strerror}", "Name a file with the log") from None
    # A line without an end, as of a binary, is cut, so that each part has a bounded number of letters.
    return [line[at : at + MOST_CHARACTERS // 2] for line in text.splitlines() for at in
            range(0, max(len(line), 1), MOST_CHARACTERS // 2)]  # fmt: skip
