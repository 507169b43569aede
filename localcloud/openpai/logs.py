# SPDX-License-Identifier: Apache-2.0
"""The log manager: serves the log files of task attempts, whole, by ranges, or their ends."""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping
from pathlib import Path

from localcloud.openpai.attempts import attempt_log_folder
from localcloud.openpai.rest_errors import invalid_parameters, no_task_log, unauthorized_user
from localcloud.openpai.tokens import Tokens
from localcloud.server.http import FilePart, Reply

PATH = "/log-manager/"
LOG_MANAGER_PORT = 9103
_TAIL_BYTES = 16_384
_ADDRESS = re.compile(r"/log-manager/[0-9.:]+/api/v1/logs/(?P<file>[A-Za-z0-9_-][A-Za-z0-9._-]*)")
_ATTEMPT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
_RANGE = re.compile(r"bytes=(?P<first>\d{0,18})-(?P<last>\d{0,18})")


def log_names(folder: Path) -> list[str]:
    """The log files of an attempt. Leaves out links, and other files that a task may have put there."""
    if not folder.is_dir():
        return []
    return sorted(path.name for path in folder.iterdir() if _NAME.fullmatch(path.name) and _is_log(path))


def read_log(home: Path, tokens: Tokens, path: str, query: Mapping[str, str], span: str) -> Reply:
    """The log at an address. `span`: the header Range, or ""."""
    match = _ADDRESS.fullmatch(path)
    attempt = query.get("pod-uid", "")
    if match is None or not _ATTEMPT.fullmatch(attempt):
        raise invalid_parameters("This is not the address of a log. Take it from the list of logs.")
    if not tokens.opens_log(query.get("token", ""), attempt):
        raise unauthorized_user("The token of this log is invalid, or has expired: ask for the list of logs again.")
    file = attempt_log_folder(home, attempt) / match["file"]
    if not _is_log(file):
        raise no_task_log()
    wanted_range = f"bytes=-{_TAIL_BYTES}" if query.get("tail-mode") == "true" else span
    size = file.stat().st_size
    headers = {"content-type": "text/plain; charset=utf-8", "accept-ranges": "bytes"}
    match = _RANGE.fullmatch(wanted_range)
    if match is None or not (match["first"] or match["last"]):
        return Reply(200, headers=headers, file=FilePart(file, 0, size))
    if match["first"]:
        first, last = int(match["first"]), min(int(match["last"] or size), size - 1)
    else:
        first, last = max(0, size - int(match["last"])), size - 1
    if first > last:
        if wanted_range.startswith("bytes=-"):  # the end of an empty file
            return Reply(200, headers=headers, file=FilePart(file, 0, 0))
        return Reply(416, headers={**headers, "content-range": f"bytes */{size}"})
    headers["content-range"] = f"bytes {first}-{last}/{size}"
    return Reply(206, headers=headers, file=FilePart(file, first, last - first + 1))


def _is_log(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
