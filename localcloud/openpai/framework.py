# SPDX-License-Identifier: Apache-2.0
"""The state machine of a job and its tasks. It uses no clock, disk or host."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from localcloud.openpai.policies import (
    ATTEMPT_OVER,
    STOP_ASKED,
    SUCCEEDED,
    JobPolicy,
    Refusal,
    RolePolicy,
    decide_retry,
)

# The states of a task's attempt, in the controller's words.
PENDING = "AttemptCreationPending"
PREPARING = "AttemptPreparing"
RUNNING = "AttemptRunning"
DELETING = "AttemptDeleting"
COMPLETED = "Completed"
# The states in which an attempt has been given to the hosts.
PLACED = (PREPARING, RUNNING, DELETING)
# Uncounted failures may repeat without limit. The first retries start at once, later ones with backoff up to this.
_AT_ONCE = 3
_LONGEST_PAUSE = 30.0
_STOPPED = (ATTEMPT_OVER, STOP_ASKED)


@dataclass
class TaskAttemptState:
    """An attempt of a task. Its `id` is unique in the cluster."""

    number: int
    job_attempt: int
    created: float
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    state: str = PENDING
    launched: float | None = None
    ended: float | None = None
    code: int | None = None
    details: str = ""
    address: str = ""
    ports: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass
class Task:
    """A task of the job's current attempt. `last`: the task's own current attempt."""

    role: RolePolicy
    index: int
    created: float
    last: TaskAttemptState
    uid: str = field(default_factory=lambda: str(uuid.uuid4()))
    counted: int = 0
    # The end of the backoff: before that time its attempt gets no place.
    not_before: float = 0.0


@dataclass
class AttemptEnd:
    """Why a job's attempt is over. `trigger`, `role` and `index` are about the task that caused it, if one did."""

    code: int
    details: str
    trigger: str = ""
    role: str = ""
    index: int | None = None


@dataclass
class JobAttempt:
    """An attempt of a job."""

    number: int
    started: float
    uid: str = field(default_factory=lambda: str(uuid.uuid4()))
    launched: float | None = None
    ended: float | None = None
    end: AttemptEnd | None = None


class Framework:
    """A job that has not ended. `changed`: task attempts that have to be saved. `to_stop`: those that the hosts have to
    stop."""

    def __init__(self, name: str, uid: str, policy: JobPolicy) -> None:
        self.name, self.uid, self.policy = name, uid, policy
        self.attempt = JobAttempt(-1, 0.0)
        self.counted = 0
        self.stopping = self.over = False
        self.tasks: dict[tuple[str, int], Task] = {}
        self.changed: dict[str, tuple[Task, TaskAttemptState]] = {}
        self.to_stop: list[TaskAttemptState] = []
        self.ended_attempts: list[JobAttempt] = []
        self._states: Counter[str] = Counter()
        self._ends: dict[tuple[str, bool], int] = Counter()

    def take(self, tasks: list[Task]) -> None:
        """Sets the tasks of the current attempt, as they were saved."""
        self.tasks = {(task.role.key, task.index): task for task in tasks}
        self._states = Counter(task.last.state for task in tasks)
        self._ends = Counter((t.role.key, t.last.code == SUCCEEDED) for t in tasks if t.last.state == COMPLETED)

    @property
    def state(self) -> str:
        """The job's state in the controller's words."""
        if self.over:
            return COMPLETED
        if self.attempt.end is not None:
            return DELETING
        # Once a task has run, the attempt counts as running: the controller checks `IsAnyTaskRunning` only while it
        # prepares (frameworkcontroller/pkg/controller/controller.go).
        if self.attempt.launched or self._states[RUNNING] or self._states[COMPLETED]:
            return RUNNING
        return PREPARING if self._states[PREPARING] else PENDING

    def pending(self, now: float) -> list[Task]:
        """The tasks that wait for a place, without those in backoff."""
        if self.over or not self._states[PENDING]:
            return []
        return [task for task in self.tasks.values() if task.last.state == PENDING and task.not_before <= now]

    def next_time(self) -> float:
        """When the backoff of the next task ends; 0 if no task waits."""
        if self.over or not self._states[PENDING]:
            return 0.0
        return min(task.not_before for task in self.tasks.values() if task.last.state == PENDING)

    def begin(self, now: float) -> None:
        """Begins the next attempt of the job, with all its tasks."""
        again = self.attempt.number + 1
        pause = now + _backoff_seconds(again - self.counted)
        self.attempt = JobAttempt(again, now)
        tasks = [
            Task(role, index, now, TaskAttemptState(0, again, now), not_before=pause)
            for role in self.policy.roles
            for index in range(role.instances)
        ]
        if refusal := self.policy.refusal:
            self._refuse(refusal, now)
            return
        self.take(tasks)
        self.changed.update((task.last.id, (task, task.last)) for task in tasks)

    def _refuse(self, refusal: Refusal, now: float) -> None:
        """Ends the job without any task."""
        self.take([])
        self.attempt.end = AttemptEnd(refusal.code, refusal.details)
        self._finish_if_done(now)

    def place(self, task: Task, address: str, ports: Mapping[str, tuple[int, ...]]) -> None:
        """Gives a task its address and ports. Then the hosts get it."""
        task.last.address, task.last.ports = address, ports
        self._set_state(task, PREPARING)

    def runs(self, task: Task, now: float) -> None:
        if task.last.state != PREPARING:
            return
        task.last.launched = now
        self.attempt.launched = self.attempt.launched or now
        self._set_state(task, RUNNING)

    def ended(self, task: Task, code: int, details: str, now: float) -> None:
        """Handles the end of a task's attempt: begins another one, or completes the task, and then perhaps the job's
        attempt."""
        if task.last.state == COMPLETED:
            return
        stopped = task.last.state == DELETING
        last = task.last
        last.code, last.details = (ATTEMPT_OVER, "Stop to complete current job attempt") if stopped else (code, details)
        last.ended = now
        follows = decide_retry(task.role.retry, task.counted, last.code)
        if follows.again and self.attempt.end is None and not self.stopping:
            self._retry(task, follows.counted, now)
            return
        self._set_state(task, COMPLETED)
        self._ends[task.role.key, last.code == SUCCEEDED] += 1
        self._check_completion(task)
        self._finish_if_done(now)

    def stop(self, now: float) -> None:
        """Stops the job for its user. It is not retried."""
        self.stopping = True
        if self.attempt.end is None:
            self._complete(AttemptEnd(STOP_ASKED, "User has requested to stop the job"))
        self._finish_if_done(now)

    def _retry(self, task: Task, counted: bool, now: float) -> None:
        former = task.last
        self._states[former.state] -= 1
        former.state = COMPLETED
        # The former attempt is saved together with the task's values of that time.
        former_task = Task(task.role, task.index, task.created, former, task.uid, task.counted)
        self.changed[former.id] = (former_task, former)
        task.counted += counted
        task.last = TaskAttemptState(former.number + 1, former.job_attempt, now)
        task.not_before = now + _backoff_seconds(task.last.number - task.counted)
        self._states[PENDING] += 1
        self.changed[task.last.id] = (task, task.last)

    def _check_completion(self, task: Task) -> None:
        """Completes the job's attempt if the end of this task decides that."""
        if self.attempt.end is not None:
            return
        role, last = task.role, task.last
        failed, succeeded = self._ends[role.key, False], self._ends[role.key, True]
        if last.code != SUCCEEDED and 1 <= role.minimum_failed <= failed:
            trigger = f"{failed} failed tasks of {role.name} reach minFailedInstances, which is {role.minimum_failed}"
            self._complete(AttemptEnd(last.code or 0, last.details, trigger, role.key, task.index))
        elif last.code == SUCCEEDED and 1 <= role.minimum_succeeded <= succeeded:
            minimum = role.minimum_succeeded
            trigger = f"{succeeded} succeeded tasks of {role.name} reach minSucceededInstances, which is {minimum}"
            self._complete(AttemptEnd(SUCCEEDED, last.details, trigger, role.key, task.index))
        elif self._states[COMPLETED] == len(self.tasks):
            self._complete(AttemptEnd(SUCCEEDED, "All tasks are completed", "All tasks are completed"))

    def _complete(self, end: AttemptEnd) -> None:
        """Completes the job's attempt, and stops its running tasks."""
        self.attempt.end = end
        for task in self.tasks.values():
            if task.last.state in (PREPARING, RUNNING):
                self.to_stop.append(task.last)
                self._set_state(task, DELETING)
            elif task.last.state == PENDING:
                task.last.code, task.last.details = ATTEMPT_OVER, "Stop to complete current job attempt"
                task.last.ended = task.last.created
                self._set_state(task, COMPLETED)

    def _finish_if_done(self, now: float) -> None:
        """After the last task of a completed attempt has ended: the job is over, or is retried."""
        end = self.attempt.end
        if end is None or self.over or self._states[COMPLETED] != len(self.tasks):
            return
        self.attempt.ended = now
        self.ended_attempts.append(self.attempt)
        follows = decide_retry(self.policy.retry, self.counted, end.code)
        if follows.again and not self.stopping:
            self.counted += follows.counted
            self.begin(now)
        else:
            self.over = True

    def _set_state(self, task: Task, state: str) -> None:
        self._states[task.last.state] -= 1
        self._states[state] += 1
        task.last.state = state
        self.changed[task.last.id] = (task, task.last)


def _backoff_seconds(uncounted: int) -> float:
    """The backoff after a number of uncounted retries."""
    return 0.0 if uncounted <= _AT_ONCE else float(min(2 ** (uncounted - _AT_ONCE - 1), _LONGEST_PAUSE))


def job_state(state: str, code: int | None) -> str:
    """The REST server's state of a job, from the controller's state and the exit code of the attempt."""
    if state in (PENDING, PREPARING):
        return "WAITING"
    if state == COMPLETED:
        if code == SUCCEEDED:
            return "SUCCEEDED"
        return "STOPPED" if code in _STOPPED else "FAILED"
    return "STOPPING" if code in _STOPPED else "RUNNING"


def task_state(state: str, code: int | None) -> str:
    """The REST server's state of a task's attempt. An attempt that is being stopped has no code yet."""
    return "STOPPING" if state == DELETING else job_state(state, code)
