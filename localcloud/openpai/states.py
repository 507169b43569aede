# SPDX-License-Identifier: Apache-2.0
"""How the REST server calls the controller's states. Pure."""

from __future__ import annotations

from localcloud.openpai.framework import COMPLETED, DELETING, PENDING, PREPARING
from localcloud.openpai.policies import ATTEMPT_OVER, STOP_ASKED, SUCCEEDED

_STOPPED = (ATTEMPT_OVER, STOP_ASKED)


def job_state(state: str, code: int | None) -> str:
    """Of a job, by the controller's state and the code of its attempt's end."""
    if state in (PENDING, PREPARING):
        return "WAITING"
    if state == COMPLETED:
        return _ended(code)
    return "STOPPING" if code in _STOPPED else "RUNNING"


def task_state(state: str, code: int | None) -> str:
    """Of a task's attempt. One that is asked to end has no code yet."""
    return "STOPPING" if state == DELETING else job_state(state, code)


def _ended(code: int | None) -> str:
    if code == SUCCEEDED:
        return "SUCCEEDED"
    return "STOPPED" if code in _STOPPED else "FAILED"
