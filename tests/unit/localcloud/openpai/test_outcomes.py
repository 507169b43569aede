# SPDX-License-Identifier: Apache-2.0
"""How jobs of the local OpenPAI end: retries and completion, by a table of what their tasks do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from localcloud.openpai.framework import DELETING, Framework, Task, job_state
from localcloud.openpai.policies import RetryPolicy, build_job_policy, decide_retry

# A task that runs until it is stopped.
RUNS = None
Does = Mapping[str, Sequence[Sequence[int | None]]]


@dataclass(frozen=True)
class Outcome:
    """The end of a job: its state and code, the attempts of the job and of all its tasks, and its counted retries."""

    state: str
    code: int
    attempts: int = 1
    counted: int = 0
    tries: int = 0


def _job(roles: Mapping[str, Mapping[str, Any]], **job: Any) -> dict[str, Any]:
    common = {"dockerImage": "image", "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0}, "commands": ["x"]}
    return {"taskRoles": {name: {**common, **row} for name, row in roles.items()}, **job}


class _Play:
    """Runs a job. Each task has a list of exit codes, one for each of its attempts, counted over all attempts of the
    job. The last one repeats."""

    def __init__(self, job: Mapping[str, Any], does: Does) -> None:
        self.framework = Framework("user~job", "uid", build_job_policy(job))
        self.does = {(role, index): list(codes) for role, each in does.items() for index, codes in enumerate(each)}
        self.tries = 0
        self.now = 1.0

    def outcome(self) -> Outcome:
        framework = self.framework
        framework.begin(self.now)
        for _ in range(200):
            if framework.over:
                break
            self._round()
        end = framework.attempt.end
        assert end is not None, "the job did not end"
        assert framework.over
        state = job_state(framework.state, end.code)
        return Outcome(state, end.code, framework.attempt.number + 1, framework.counted, self.tries)

    def _round(self) -> None:
        """One round: every waiting task starts, and every running task ends or goes on."""
        self.now += 60
        for task in self.framework.pending(self.now):
            self.framework.place(task, "10.151.0.16", {})
            self.tries += 1
        attempt = self.framework.attempt
        for task in list(self.framework.tasks.values()):
            if self.framework.attempt is attempt:
                self._end(task)

    def _end(self, task: Task) -> None:
        if task.last.state == DELETING:
            self.framework.ended(task, 143, "it was stopped", self.now)
            return
        self.framework.runs(task, self.now)
        codes = self.does[task.role.key, task.index]
        code = codes.pop(0) if len(codes) > 1 else codes[0]
        if code is not RUNS:
            self.framework.ended(task, code, "", self.now)


def _two(**more: Any) -> dict[str, Any]:
    return _job({"worker": {"instances": 2, **more.pop("role", {})}}, **more)


def _alone(**more: Any) -> dict[str, Any]:
    return _job({"worker": {"instances": 2, **more.pop("role", {})}}, extras={"gangAllocation": False}, **more)


_EVALUATES = _job(
    {"worker": {"instances": 2}, "ps": {"completion": {"minFailedInstances": 1, "minSucceededInstances": -1}}}
)
_OF_ONE = {"completion": {"minFailedInstances": 1, "minSucceededInstances": 1}}
_NEVER = {"completion": {"minFailedInstances": -1, "minSucceededInstances": -1}}
# 255: unknown. 137: killed, which is transient. 254: no such image, which is permanent.
TABLE: Mapping[str, tuple[dict[str, Any], Does, Outcome]] = {
    "all succeed": (_two(), {"worker": [[0], [0]]}, Outcome("SUCCEEDED", 0, tries=2)),
    "one fails, the other is stopped": (_two(), {"worker": [[RUNS], [255]]}, Outcome("FAILED", 255, tries=2)),
    "a retry that succeeds": (
        _two(jobRetryCount=1), {"worker": [[RUNS, 0], [255, 0]]}, Outcome("SUCCEEDED", 0, 2, 1, 4),
    ),
    "retries are exhausted": (_two(jobRetryCount=2), {"worker": [[RUNS], [255]]}, Outcome("FAILED", 255, 3, 2, 6)),
    "no retries after success": (_two(jobRetryCount=2), {"worker": [[0], [0]]}, Outcome("SUCCEEDED", 0, tries=2)),
    "transient ones are tried again and not counted": (
        _two(), {"worker": [[137, 137, 0], [0]]}, Outcome("SUCCEEDED", 0, 3, 0, 6),
    ),
    "transient ones use up no retry": (
        _two(jobRetryCount=1), {"worker": [[137, 255, 255], [RUNS]]}, Outcome("FAILED", 255, 3, 1, 6),
    ),
    "permanent ones are not tried again": (
        _two(jobRetryCount=3), {"worker": [[254, 0], [RUNS]]}, Outcome("FAILED", 254, tries=2),
    ),
    "an unknown one, then a permanent one": (
        _two(jobRetryCount=3), {"worker": [[255, 254], [RUNS]]}, Outcome("FAILED", 254, 2, 1, 4),
    ),
    "one success is enough": (_two(role=_OF_ONE), {"worker": [[RUNS], [0]]}, Outcome("SUCCEEDED", 0, tries=2)),
    "servers are stopped when workers are done": (
        _EVALUATES, {"worker": [[0], [0]], "ps": [[RUNS]]}, Outcome("SUCCEEDED", 0, tries=3),
    ),
    "a server that fails ends the job": (
        _EVALUATES, {"worker": [[RUNS], [RUNS]], "ps": [[255]]}, Outcome("FAILED", 255, tries=3),
    ),
    "failures never end it: all tasks complete, and that is success": (
        _two(role=_NEVER), {"worker": [[255], [0]]}, Outcome("SUCCEEDED", 0, tries=2),
    ),
    "two failures are allowed": (
        _two(role={"completion": {"minFailedInstances": 2}}), {"worker": [[255], [0]]}, Outcome("SUCCEEDED", 0, tries=2)
    ),
    "a gang has no retries of tasks": (
        _two(role={"taskRetryCount": 3}), {"worker": [[255, 0], [0]]}, Outcome("FAILED", 255, tries=2),
    ),
    "a task alone is tried again": (
        _alone(role={"taskRetryCount": 1}), {"worker": [[255, 0], [0]]}, Outcome("SUCCEEDED", 0, tries=3),
    ),
    "retries of a task are exhausted": (
        _alone(role={"taskRetryCount": 1}), {"worker": [[255], [RUNS]]}, Outcome("FAILED", 255, tries=3),
    ),
    "a transient task is tried again and not counted": (
        _alone(role={"taskRetryCount": 1}), {"worker": [[137, 255, 137, 0], [0]]}, Outcome("SUCCEEDED", 0, tries=5),
    ),
    "a permanent task is not tried again": (
        _alone(role={"taskRetryCount": 9}), {"worker": [[254, 0], [RUNS]]}, Outcome("FAILED", 254, tries=2),
    ),
    "retries of a task, then of the job": (
        _alone(role={"taskRetryCount": 1}, jobRetryCount=1), {"worker": [[255], [RUNS]]},
        Outcome("FAILED", 255, 2, 1, 6),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLE)
def test_a_job_ends_as_its_policies_say(case: str) -> None:
    job, does, outcome = TABLE[case]
    assert _Play(job, does).outcome() == outcome


@pytest.mark.parametrize(
    ("policy", "counted", "code", "again", "counts"),
    [
        (RetryPolicy(True, 0), 0, 255, False, False),
        (RetryPolicy(True, 1), 0, 255, True, True),
        (RetryPolicy(True, 1), 1, 255, False, False),
        (RetryPolicy(True, 0), 9, 137, True, False),
        (RetryPolicy(True, 9), 0, 132, False, False),
        # Without end, as the controller itself would: the protocol refuses both.
        (RetryPolicy(True, -1), 99, 255, True, True),
        (RetryPolicy(True, -1), 99, 0, False, False),
        (RetryPolicy(False, -2), 99, 0, True, True),
        (RetryPolicy(False, -2), 99, 254, True, True),
        (RetryPolicy(False, 0), 0, 137, False, False),
    ],
)
def test_retries_are_counted_as_the_controller_counts(
    policy: RetryPolicy, counted: int, code: int, again: bool, counts: bool
) -> None:
    follows = decide_retry(policy, counted, code)
    assert (follows.again, follows.counted) == (again, counts)


def test_a_stopped_job_is_not_retried() -> None:
    play = _Play(_two(jobRetryCount=5), {"worker": [[255], [RUNS]]})
    play.framework.begin(1.0)
    for task in play.framework.pending(1.0):
        play.framework.place(task, "10.151.0.16", {})
    play.framework.ended(play.framework.tasks["worker", 0], 255, "", 2.0)
    play.framework.stop(3.0)
    assert play.framework.state == "AttemptDeleting"
    outcome = _rest(play)
    # The failure came first.
    assert (outcome.state, outcome.attempts) == ("FAILED", 1)


def test_a_waiting_job_stops_at_once() -> None:
    framework = Framework("user~job", "uid", build_job_policy(_two()))
    framework.begin(1.0)
    framework.stop(2.0)
    assert framework.over
    assert framework.to_stop == []
    assert job_state(framework.state, framework.attempt.end.code if framework.attempt.end else None) == "STOPPED"


def test_uncounted_failures_are_retried_with_backoff() -> None:
    play = _Play(_two(), {"worker": [[137], [RUNS]]})
    play.framework.begin(1.0)
    waits = []
    for _ in range(12):
        number = play.framework.attempt.number
        while play.framework.attempt.number == number:
            play._round()
        waits.append(play.framework.next_time() - play.now)
    assert waits[:4] == [0, 0, 0, 1]
    assert waits == sorted(waits)
    assert waits[-1] == 30


def _rest(play: _Play) -> Outcome:
    while not play.framework.over:
        play._round()
    end = play.framework.attempt.end
    assert end is not None
    return Outcome(job_state(play.framework.state, end.code), end.code, play.framework.attempt.number + 1)
