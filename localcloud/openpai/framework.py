# SPDX-License-Identifier: Apache-2.0
"""A living job: its tasks, how they go, and what follows from each end. No clock, disk or host is used here."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from localcloud.openpai.policies import ATTEMPT_OVER, STOP_ASKED, SUCCEEDED, JobPolicy, Refusal, RolePolicy, retry

# The states of a task's attempt, in the controller's words.
PENDING = "AttemptCreationPending"
PREPARING = "AttemptPreparing"
RUNNING = "AttemptRunning"
DELETING = "AttemptDeleting"
COMPLETED = "Completed"
# The states in which the hosts have the attempt.
PLACED = (PREPARING, RUNNING, DELETING)
# A failure that is not counted can repeat without end. From this retry on, the next one waits: so many seconds.
_AT_ONCE = 3
_LONGEST_PAUSE = 30.0
_STOPPED = (ATTEMPT_OVER, STOP_ASKED)


@dataclass
class TaskTry:
    """One attempt of a task. `id` tells it from all others of the cluster."""

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
    """A task of the job's current attempt, with its current attempt."""

    role: RolePolicy
    index: int
    created: float
    last: TaskTry
    uid: str = field(default_factory=lambda: str(uuid.uuid4()))
    counted: int = 0
    # Before this moment its attempt gets no place.
    not_before: float = 0.0


@dataclass
class AttemptEnd:
    """Why a job's attempt is over. The trigger is the task that brought it about, if one did."""

    code: int
    details: str
    trigger: str = ""
    role: str = ""
    index: int | None = None


@dataclass
class JobTry:
    """One attempt of a job."""

    number: int
    started: float
    uid: str = field(default_factory=lambda: str(uuid.uuid4()))
    launched: float | None = None
    ended: float | None = None
    end: AttemptEnd | None = None


class Framework:
    """One job that has not ended. `changed` and `former` are the attempts of tasks that are not written down yet;
    `to_stop` are those that the hosts must end."""

    def __init__(self, name: str, uid: str, policy: JobPolicy) -> None:
        self.name, self.uid, self.policy = name, uid, policy
        self.attempt = JobTry(-1, 0.0)
        self.counted = 0
        self.stopping = self.over = False
        self.tasks: dict[tuple[str, int], Task] = {}
        self.changed: dict[str, tuple[Task, TaskTry]] = {}
        self.to_stop: list[TaskTry] = []
        self.ended_attempts: list[JobTry] = []
        self._states: Counter[str] = Counter()
        self._ends: dict[tuple[str, bool], int] = Counter()

    def take(self, tasks: list[Task]) -> None:
        """The tasks of the current attempt, as they were when they were written down."""
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
        # Once a task has run, the attempt runs, whatever its tasks do: the controller asks `IsAnyTaskRunning` only
        # while it prepares (frameworkcontroller/pkg/controller/controller.go).
        if self.attempt.launched or self._states[RUNNING] or self._states[COMPLETED]:
            return RUNNING
        return PREPARING if self._states[PREPARING] else PENDING

    def pending(self, now: float) -> list[Task]:
        """The tasks that wait for a place, without those whose pause is not over."""
        if self.over or not self._states[PENDING]:
            return []
        return [task for task in self.tasks.values() if task.last.state == PENDING and task.not_before <= now]

    def next_time(self) -> float:
        """When the next task may have a place. 0 if none waits for one."""
        if self.over or not self._states[PENDING]:
            return 0.0
        return min(task.not_before for task in self.tasks.values() if task.last.state == PENDING)

    def begin(self, now: float) -> None:
        """The next attempt of the job, with all its tasks."""
        again = self.attempt.number + 1
        pause = now + _pause(again - self.counted)
        self.attempt = JobTry(again, now)
        tasks = [
            Task(role, index, now, TaskTry(0, again, now), not_before=pause)
            for role in self.policy.roles
            for index in range(role.instances)
        ]
        if refusal := self.policy.refusal:
            self._refuse(refusal, now)
            return
        self.take(tasks)
        self.changed.update((task.last.id, (task, task.last)) for task in tasks)

    def _refuse(self, refusal: Refusal, now: float) -> None:
        """The job ends without any task."""
        self.take([])
        self.attempt.end = AttemptEnd(refusal.code, refusal.details)
        self._settle(now)

    def place(self, task: Task, address: str, ports: Mapping[str, tuple[int, ...]]) -> None:
        """The task has an address and ports, and goes to the hosts."""
        task.last.address, task.last.ports = address, ports
        self._turn(task, PREPARING)

    def runs(self, task: Task, now: float) -> None:
        if task.last.state != PREPARING:
            return
        task.last.launched = now
        self.attempt.launched = self.attempt.launched or now
        self._turn(task, RUNNING)

    def ended(self, task: Task, code: int, details: str, now: float) -> None:
        """What follows from the end of a task's attempt: another one, or the end of the task, and then of the job's
        attempt."""
        if task.last.state == COMPLETED:
            return
        asked = task.last.state == DELETING
        last = task.last
        last.code, last.details = (ATTEMPT_OVER, "Stop to complete current job attempt") if asked else (code, details)
        last.ended = now
        follows = retry(task.role.retry, task.counted, last.code)
        if follows.again and self.attempt.end is None and not self.stopping:
            self._try_again(task, follows.counted, now)
            return
        self._turn(task, COMPLETED)
        self._ends[task.role.key, last.code == SUCCEEDED] += 1
        self._judge(task)
        self._settle(now)

    def stop(self, now: float) -> None:
        """The user ends the job. It is not tried again."""
        self.stopping = True
        if self.attempt.end is None:
            self._complete(AttemptEnd(STOP_ASKED, "User has requested to stop the job"))
        self._settle(now)

    def _try_again(self, task: Task, counted: bool, now: float) -> None:
        former = task.last
        self._states[former.state] -= 1
        former.state = COMPLETED
        # What is written down with the former attempt is the task as it was then.
        kept = Task(task.role, task.index, task.created, former, task.uid, task.counted)
        self.changed[former.id] = (kept, former)
        task.counted += counted
        task.last = TaskTry(former.number + 1, former.job_attempt, now)
        task.not_before = now + _pause(task.last.number - task.counted)
        self._states[PENDING] += 1
        self.changed[task.last.id] = (task, task.last)

    def _judge(self, task: Task) -> None:
        """Whether the job's attempt is over with the end of this task."""
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
        """Ends the job's attempt: tasks that live are stopped."""
        self.attempt.end = end
        for task in self.tasks.values():
            if task.last.state in (PREPARING, RUNNING):
                self.to_stop.append(task.last)
                self._turn(task, DELETING)
            elif task.last.state == PENDING:
                task.last.code, task.last.details = ATTEMPT_OVER, "Stop to complete current job attempt"
                task.last.ended = task.last.created
                self._turn(task, COMPLETED)

    def _settle(self, now: float) -> None:
        """Once no task of an ended attempt lives, the job is over or tried again."""
        end = self.attempt.end
        if end is None or self.over or self._states[COMPLETED] != len(self.tasks):
            return
        self.attempt.ended = now
        self.ended_attempts.append(self.attempt)
        follows = retry(self.policy.retry, self.counted, end.code)
        if follows.again and not self.stopping:
            self.counted += follows.counted
            self.begin(now)
        else:
            self.over = True

    def _turn(self, task: Task, state: str) -> None:
        self._states[task.last.state] -= 1
        self._states[state] += 1
        task.last.state = state
        self.changed[task.last.id] = (task, task.last)


def _pause(uncounted: int) -> float:
    """How long the next attempt waits after so many retries that were not counted."""
    return 0.0 if uncounted <= _AT_ONCE else float(min(2 ** (uncounted - _AT_ONCE - 1), _LONGEST_PAUSE))


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
