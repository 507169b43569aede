# SPDX-License-Identifier: Apache-2.0
"""Names the files that are lost with the node: the largest ones with their sizes, and how to keep them."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_MOST_NAMED = 10
_LONGEST_NAME = 160
_WITHOUT_BUCKET = "Nothing is kept for a run without a bucket: let the script write to a folder that outlives the node."
# What happens to the files: on this platform, or on the real one for which the local cloud stands.
WITH_NODE = "will be lost with this node:"
ON_A_REAL_CLOUD = "would be lost on a real cloud; only the local cloud keeps files of any size:"
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


@dataclass(frozen=True)
class Loss:
    """A lost file, or a folder with `files` files. `inside`: in the working directory, so `keep:` can name it."""

    name: str
    size: int
    why: str
    inside: bool = False
    files: int = 1


def describe_losses(losses: Sequence[Loss], bucket: bool, fate: str = WITH_NODE) -> Iterator[str]:
    """The lines of the log; none if nothing is lost. `bucket`: whether the run has one, so that files can be kept."""
    if not losses:
        return
    files, size = sum(loss.files for loss in losses), sum(loss.size for loss in losses)
    yield f"{count_files(files)} ({format_size(size)}) that training made {fate}"
    largest = _largest_first(losses)
    for loss in largest[:_MOST_NAMED]:
        several = f", {count_files(loss.files)}" if loss.files > 1 else ""
        yield f"  {format_size(loss.size)}{several}  {shown_name(loss.name)}: {loss.why}"
    rest = largest[_MOST_NAMED:]
    if rest:
        yield f"  and {sum(loss.files for loss in rest):,} more ({format_size(sum(loss.size for loss in rest))})"
    yield _how_to_keep(largest) if bucket else _WITHOUT_BUCKET


def loss_record(losses: Sequence[Loss], bucket: bool) -> dict[str, Any] | None:
    """The losses for the node's status object, which programs read; None if nothing is lost."""
    if not losses:
        return None
    largest = _largest_first(losses)
    return {
        "files": sum(loss.files for loss in losses),
        "bytes": sum(loss.size for loss in losses),
        "largest": [
            {"name": shown_name(loss.name), "bytes": loss.size, "files": loss.files, "why": loss.why}
            for loss in largest[:_MOST_NAMED]
        ],
        "remedy": _how_to_keep(largest) if bucket else _WITHOUT_BUCKET,
    }


def _largest_first(losses: Sequence[Loss]) -> list[Loss]:
    return sorted(losses, key=lambda loss: (-loss.size, loss.name))


def _how_to_keep(losses: Sequence[Loss]) -> str:
    inside = [loss.name for loss in losses if loss.inside]
    example = next((name for name in inside if name.isprintable() and len(name) <= _LONGEST_NAME), "")
    outside = "write it below the folder $TRAINYARD_OUTPUT"
    if not example:
        return f"To keep such a file, {outside}."
    pattern = glob.escape(example.rstrip("/")) + ("/**" if example.endswith("/") else "")
    named = json.dumps([pattern], ensure_ascii=False)
    return f"To keep such a file of the working directory, give the job `keep: {named}`. Or {outside}."


def count_files(files: int) -> str:
    return f"{files:,} file{'s' * (files != 1)}"


def format_size(size: float) -> str:
    """A size as people read it, in powers of 1000."""
    unit = 0
    while size >= 999.95 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{size:.0f} B"


def shown_name(name: str) -> str:
    """A name in one line of the log, escaped as by Python."""
    text = name if name.isprintable() else ascii(name)[1:-1]
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 40]}…{text[-39:]}"
