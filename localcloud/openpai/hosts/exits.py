# SPDX-License-Identifier: Apache-2.0
"""How a task ended, as OpenPAI's runtime tells it: not every code of a program reaches the controller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.openpai import UNKNOWN_FAILURE, reported
from localcloud.hosts.assignment import CannotStartError
from localcloud.openpai.tasks import LOST, TaskExit

_STOPPED, _OUT_OF_MEMORY, _CANNOT_START = 143, -1200, -1204
# Why the hosts end a node (localcloud/hosts/watch.py, groups.py).
_MEMORY = "memory"


class InitError(CannotStartError):
    """OpenPAI's own container, which goes first, ends with `code`: the user's never starts."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


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
            return TaskExit(_OUT_OF_MEMORY if _MEMORY in detail else UNKNOWN_FAILURE, detail)
    if _MEMORY in detail:
        return TaskExit(_OUT_OF_MEMORY, detail)
    code = UNKNOWN_FAILURE if code is None else 128 - code if code < 0 else int(code)
    if code == 0:
        return TaskExit(0)
    return TaskExit(reported(code, tail), f"The command ended with code {code}")
