# SPDX-License-Identifier: Apache-2.0
"""A Finding: one thing that is wrong with a stack file, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]
# Where in the file: keys and indexes from the top, as ("config", "trainyard:jobs", "resnet", "image").
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    code: str
    path: Path
    message: str
    remedy: str
    severity: Severity = "error"
    file: str = ""
    line: int = 0
    column: int = 0


def dotted(path: Path) -> str:
    """A path as text, without the leading `config`: `trainyard:jobs.resnet.runs[0]`."""
    text = ""
    for part in path[1:] if path[:1] == ("config",) and len(path) > 1 else path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
