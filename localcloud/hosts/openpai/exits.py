# SPDX-License-Identifier: Apache-2.0
"""How a task ended, as OpenPAI's runtime tells it: not every code of a program reaches the controller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.tables import table
from localcloud.openpai.tasks import LOST, TaskExit

_COMMAND_INVALID, _UNKNOWN, _STOPPED, _OUT_OF_MEMORY, _CANNOT_START = 220, 255, 143, -1200, -1204
# From here on the runtime gives the codes out itself: a program cannot claim one.
_FIRST_OF_THE_RUNTIME = 220
_NOT_FOUND = 127
_SAYS_NOT_FOUND = b"command not found"
# Why the hosts end a node (localcloud/hosts/watch.py, groups.py).
_MEMORY = "memory"


def cannot_start(details: str) -> TaskExit:
    return TaskExit(_CANNOT_START, details)


def lost(details: str) -> TaskExit:
    return TaskExit(LOST, details)


def stopped() -> TaskExit:
    return TaskExit(_STOPPED, "The task was stopped before its command began")


def task_exit(result: Mapping[str, Any], tail: bytes) -> TaskExit:
    """By the result that the supervisor wrote, and the end of what the command printed."""
    code, detail = result.get("code"), str(result.get("detail") or "")
    match result["reason"]:
        case "unstartable":
            return cannot_start(f"The command could not be started: {detail}")
        case "limit":
            return TaskExit(_OUT_OF_MEMORY if _MEMORY in detail else _UNKNOWN, detail)
    if _MEMORY in detail:
        return TaskExit(_OUT_OF_MEMORY, detail)
    code = _UNKNOWN if code is None else 128 - code if code < 0 else int(code)
    if code == 0:
        return TaskExit(0)
    return TaskExit(_reported(code, tail), f"The command ended with code {code}")


def _reported(code: int, tail: bytes) -> int:
    if code == _NOT_FOUND and _SAYS_NOT_FOUND in tail.lower():
        return _COMMAND_INVALID
    known = {row["code"] for row in table("openpai_exits")["exit"]}
    return code if code in known and 128 < code < _FIRST_OF_THE_RUNTIME else _UNKNOWN
