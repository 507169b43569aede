# SPDX-License-Identifier: Apache-2.0
"""Compares a job's code folders of both sides: files by name, and how many lines each gains and loses.

Lines are counted as a set in which each may be several times, which takes the same time for every file: a comparison
line by line can take hours for a file that is made for it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from schemas.job_code import folder_entries
from schemas.name_suggestions import count_noun

# Larger files are only named, and what is read of one folder is limited.
MOST_BYTES, MOST_BYTES_READ = 1_000_000, 64_000_000
MOST_FILES = 300


@dataclass(frozen=True, slots=True)
class FileChange:
    """`words`: what changes in the file. `name` empty: about further files."""

    name: str
    words: str
    is_new: bool = False
    is_gone: bool = False


@dataclass(slots=True)
class _ReadingBudget:
    left: int

    def read(self, path: Path) -> bytes | None:
        """The file's content. None if it cannot be read, or if no more may be read."""
        try:
            self.left -= path.stat().st_size
            return path.read_bytes() if self.left >= 0 else None
        except OSError:
            return None


@lru_cache(maxsize=64)
def compare_code_folders(before: Path | None, after: Path, budget: int = MOST_BYTES_READ) -> tuple[FileChange, ...]:
    """`before`: None if that side has no such folder: then all files are new. `budget`: bytes that may be read.

    Jobs and stacks share folders, so the last ones are kept: a command has a folder of its own for the earlier side.
    """
    return tuple(_compare_files(before, after, budget))


def _compare_files(before: Path | None, after: Path, budget: int) -> Iterator[FileChange]:
    then = dict(folder_entries(before)) if before else {}
    now = dict(folder_entries(after))
    reading, shown, further, uncompared = _ReadingBudget(budget), 0, 0, 0
    for name in sorted({**then, **now}):
        old, new = then.get(name), now.get(name)
        change = _compare_file(name, old, new, reading)
        if change is None:
            continue
        if reading.left < 0 and old and new:
            uncompared += 1
        elif shown == MOST_FILES:
            further += 1
        else:
            shown += 1
            yield change
    if further:
        yield FileChange("", f"{count_noun(further, 'further file')} of the code")
    if uncompared:
        yield FileChange("", f"{count_noun(uncompared, 'file')} of the code not compared, as there is too much to read")


def _compare_file(name: str, old: Path | None, new: Path | None, reading: _ReadingBudget) -> FileChange | None:
    """None if the file is the same on both sides."""
    if old is None or new is None:
        there = old or new
        assert there is not None
        content = reading.read(there)
        lines = _text_lines(content)
        size = count_noun(len(lines), "line") if lines is not None else f"{_size_of(there):,} bytes"
        return FileChange(name, size, is_new=old is None, is_gone=new is None)
    mode = _mode_words(old, new)
    if old.samefile(new):
        return None
    before, after = reading.read(old), reading.read(new)
    if before is not None and before == after:
        return FileChange(name, mode) if mode else None
    before_lines, after_lines = _text_lines(before), _text_lines(after)
    if before_lines is None or after_lines is None:
        words = f"other bytes, {_size_of(old):,} -> {_size_of(new):,}"
    else:
        then, now = Counter(before_lines), Counter(after_lines)
        counts = ((now - then).total(), "+"), ((then - now).total(), "-")
        changed = " ".join(f"{sign}{count_noun(count, 'line')}" for count, sign in counts if count)
        words = changed or "lines in another order, or with other ends"
    return FileChange(name, f"{words}, {mode}" if mode else words)


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _mode_words(old: Path, new: Path) -> str:
    runs, ran = os.access(new, os.X_OK), os.access(old, os.X_OK)
    return "" if runs == ran else "becomes executable" if runs else "is no longer executable"


def _text_lines(content: bytes | None) -> list[str] | None:
    """The lines of a text. None for anything else, and for large files."""
    if content is None or len(content) > MOST_BYTES or b"\0" in content:
        return None
    try:
        return content.decode().splitlines()
    except UnicodeDecodeError:
        return None
