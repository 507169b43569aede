# SPDX-License-Identifier: Apache-2.0
"""Maps the end of a task to the exit code that OpenPAI's runtime would report, which may differ from the program's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.openpai import UNKNOWN_FAILURE, reported
from localcloud.hosts.assignment import CannotStartError
from localcloud.openpai.tasks import LOST, TaskExit

_STOPPED, _OUT_OF_MEMORY, _CANNOT_START = 143, -1200, -1204
# The beginning of the hosts' reason if a node used too much memory (localcloud/hosts/watch.py, limits.py).
_MEMORY = "memory"


class InitError(CannotStartError):
    """OpenPAI's init container ends with `code`, so the user's container never starts."""

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
    """The exit of a task, from the supervisor's result, and from the end of the command's output."""
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
