# SPDX-License-Identifier: Apache-2.0
"""The last calls and why some were refused, from the end of the server's log."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

SHOWN = 60
_TAIL_BYTES = 64 * 1024
_LINE = re.compile(r"^\S+ (?P<time>\S+) (?P<level>[A-Z]+) (?P<text>.*)$")
_CALL = re.compile(r"^(?P<method>[A-Z]+) (?P<target>/\S*) (?P<status>\d{3}) (?P<took>\S+ms) (?P<told>.*)$")
_OURS = ("/.trainyard", "/console")


def last_calls(home: Path) -> dict[str, Any]:
    """The last calls, newest first. The reason of a refusal is the line before it in the log."""
    rows: list[list[str]] = []
    reason = ""
    for line in _tail(home / "server.log"):
        match = _LINE.match(line)
        if not match:
            continue
        call = _CALL.match(match["text"])
        if call is None:
            reason = match["text"] if match["level"] == "WARNING" else reason
        elif not call["target"].startswith(_OURS):
            path = call["target"].partition("?")[0]
            rows.append([match["time"], call["status"], call["method"], path, call["told"], reason, call["took"]])
            reason = ""
    columns = ["time", "status", "method", "path", "operation", "refused because", "took"]
    return {"name": "newest first", "tables": [{"columns": columns, "rows": rows[: -SHOWN - 1 : -1]}]}


def _tail(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            return file.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return []
