# SPDX-License-Identifier: Apache-2.0
"""Files that training made and nobody keeps, as the status objects of launchers name them (launcher/losses.py).

Anybody who may write to the bucket may write such an object. So only few, short parts of it are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from launcher.losses import amount, count

_MOST_NAMED, _LONGEST, _LARGEST = 10, 300, 2**53


@dataclass(frozen=True, slots=True)
class LostFile:
    """A file, or a folder of `files`."""

    name: str
    size: int
    files: int
    why: str


@dataclass(frozen=True, slots=True)
class Lost:
    """What one rank did not keep: how much in all, the largest by name, and how to keep such files."""

    files: int
    size: int
    largest: tuple[LostFile, ...] = ()
    remedy: str = ""


def read_lost(status: Mapping[str, Any] | None) -> Lost | None:
    """None where everything was kept, and where nobody has said so yet."""
    row = (status or {}).get("lost")
    if not isinstance(row, Mapping) or not _count(row.get("files")):
        return None
    rows = row.get("largest")
    named = [one for one in (rows if isinstance(rows, list) else [])[:_MOST_NAMED] if isinstance(one, Mapping)]
    return Lost(_count(row["files"]), _count(row.get("bytes")), tuple(map(_file, named)), _text(row, "remedy"))


def _file(row: Mapping[str, Any]) -> LostFile:
    return LostFile(_text(row, "name"), _count(row.get("bytes")), _count(row.get("files")), _text(row, "why"))


def total_words(lost: Iterable[Lost | None]) -> str:
    """In a few words: of one rank, or of several together. Empty where all is kept."""
    found = [one for one in lost if one is not None]
    files, size = sum(one.files for one in found), sum(one.size for one in found)
    return f"{count(files)} ({amount(size)}) not kept" if files else ""


def _count(value: Any) -> int:
    return value if type(value) is int and 0 <= value <= _LARGEST else 0


def _text(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    return value[:_LONGEST] if isinstance(value, str) else ""
