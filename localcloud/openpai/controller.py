# SPDX-License-Identifier: Apache-2.0
"""OpenPAI's controller: allocates resources for tasks, gives the tasks to the hosts, and retries or completes jobs.

It handles events in batches. A batch changes the jobs, saves the changes, and only then notifies the hosts. If the
changes cannot be saved, they are undone, and the batch is retried.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

from localcloud.openpai.attempts import AttemptMaker, assigned_ports
from localcloud.openpai.framework import PLACED, Framework, Task, TaskAttemptState, job_state
from localcloud.openpai.job_store import JobStore
from localcloud.openpai.tasks import LOST, NoTasks, TaskExit, Tasks
from localcloud.openpai.virtual_clusters import Allocations, role_needs, sum_resources
from localcloud.server import http

_SECONDS_BEFORE_RETRY = 5.0
# Waiting tasks are tried again at this interval, because a change of a virtual cluster's limits has to be polled.
_SECONDS_BETWEEN_PLACEMENTS = 2.0
_LOST_WITH_THE_CLOUD = "The local cloud ended while the task ran, and its hosts with it"
_CANNOT_START = -310
log = logging.getLogger("localcloud")
Event = Callable[[], Framework | None]


class Controller:
    """Implements `localcloud.openpai.tasks.TaskReports`, and answers the REST server."""

    def __init__(self, home: Path, store: JobStore, allocations: Allocations) -> None:
        self.tasks: Tasks = NoTasks(self)
        self._store, self._allocations = store, allocations
        self._attempts = AttemptMaker(home, store)
        self._frameworks: dict[str, Framework] = {}
        self._waiting: dict[str, Framework] = {}
        self._placed: dict[str, tuple[Framework, Task]] = {}
        self._events: deque[Event] = deque()
        self._handling = self._closed = False
        self._alarm: asyncio.TimerHandle | None = None

    # -- called by the REST server, after it has saved the job or the request to stop

    def submitted(self, name: str) -> None:
        row = self._store.job(name)
        if row is not None:
            self._frameworks[name] = self._store.load(row)
            self._queue_event(lambda: self._begin(name))

    def stop(self, name: str) -> None:
        self._queue_event(lambda: self._stop(name))

    def waits_for(self, name: str) -> tuple[list[Task], list[str]]:
        """The tasks of a job that wait for resources, and the resources that its virtual cluster lacks for them."""
        framework = self._waiting.get(name)
        pending = framework.pending(http.current_moment()) if framework else []
        if framework is None or not pending:
            return [], []
        need = (
            sum_resources(role_needs(task.role) for task in pending)
            if framework.policy.gang
            else role_needs(pending[0].role)
        )
        return pending, self._allocations.lacking(framework.policy.virtual_cluster, need)

    def recover(self) -> None:
        """Resumes jobs that had not ended when the cloud did. Their tasks were lost with its hosts."""
        self._load()
        for framework in list(self._frameworks.values()):
            name = framework.name
            if framework.attempt.number < 0:
                self._events.append(lambda name=name: self._begin(name))  # type: ignore[misc]
            if framework.stopping:
                self._events.append(lambda name=name: self._stop(name))  # type: ignore[misc]
        lost = TaskExit(LOST, _LOST_WITH_THE_CLOUD)
        for attempt in list(self._placed):
            self._events.append(lambda attempt=attempt: self._ended(attempt, lost))  # type: ignore[misc]
        self._handle_events()

    def close(self) -> None:
        """Called before the hosts stop, so that the resulting ends of tasks are ignored."""
        self._closed = True
        if self._alarm:
            self._alarm.cancel()

    # -- called by the hosts

    def running(self, attempt: str) -> None:
        self._queue_event(lambda: self._runs(attempt))

    def ended(self, attempt: str, how: TaskExit) -> None:
        self._queue_event(lambda: self._ended(attempt, how))

    # -- events, each of which changes one job

    def _begin(self, name: str) -> Framework | None:
        framework = self._frameworks.get(name)
        if framework and framework.attempt.number < 0:
            framework.begin(http.current_moment())
        return framework

    def _stop(self, name: str) -> Framework | None:
        framework = self._frameworks.get(name)
        if framework:
            framework.stop(http.current_moment())
        return framework

    def _runs(self, attempt: str) -> Framework | None:
        framework, task = self._placed.get(attempt, (None, None))
        if framework and task:
            framework.runs(task, http.current_moment())
        return framework

    def _ended(self, attempt: str, how: TaskExit) -> Framework | None:
        framework, task = self._placed.pop(attempt, (None, None))
        self._allocations.release(attempt)
        if framework and task and task.last.id == attempt:
            framework.ended(task, how.code, how.details, http.current_moment())
        return framework

    # -- batches of events

    def _queue_event(self, event: Event) -> None:
        if not self._closed:
            self._events.append(event)
            self._handle_events()

    def _handle_events(self) -> None:
        """Handles all queued events. Reports that the hosts make meanwhile are handled in the next batch."""
        if self._handling or self._closed:
            return
        self._handling = True
        try:
            while self._events:
                placed, stopped = self._apply_events()
                self._notify_hosts(placed, stopped)
        except Exception:
            log.exception("OpenPAI's controller: trying again")
            self._load()
            self._wake(_SECONDS_BEFORE_RETRY)
        finally:
            self._handling = False

    def _apply_events(self) -> tuple[list[tuple[Framework, Task]], list[TaskAttemptState]]:
        """Applies all queued events in one transaction."""
        events = list(self._events)
        with self._store.transaction():
            touched = {each.name: each for event in events if (each := event())}
            self._waiting.update(touched)
            placed = self._place(http.current_moment())
            touched |= {each.name: each for each, _ in placed}
            for framework in touched.values():
                end = framework.attempt.end
                self._store.write(framework, job_state(framework.state, end.code if end else None))
        for _ in events:
            self._events.popleft()
        stopped = []
        for framework in touched.values():
            stopped += framework.to_stop
            framework.to_stop = []
            if framework.over:
                self._frameworks.pop(framework.name, None)
                self._attempts.forget(framework.name)
        return placed, stopped

    def _place(self, now: float) -> list[tuple[Framework, Task]]:
        """Places waiting tasks, the oldest job first. The tasks of a gang are placed all together or not at all."""
        placed: list[tuple[Framework, Task]] = []
        wake_times = [now + _SECONDS_BETWEEN_PLACEMENTS]
        for name, framework in list(self._waiting.items()):
            pending = framework.pending(now)
            for group in [pending] if framework.policy.gang else [[task] for task in pending]:
                if not self._place_group(framework, group):
                    break
                placed += [(framework, task) for task in group]
            if not (later := framework.next_time()):
                del self._waiting[name]
            elif later > now:
                wake_times.append(later)
        if self._waiting:
            self._wake(min(wake_times) - now)
        return placed

    def _place_group(self, framework: Framework, group: list[Task]) -> bool:
        cluster = framework.policy.virtual_cluster
        if self._allocations.lacking(cluster, sum_resources(role_needs(task.role) for task in group)):
            return False
        protocol = self._attempts.protocol(framework.name)
        for task in group:
            address = self._allocations.allocate(task.last.id, cluster, role_needs(task.role))
            framework.place(task, address, assigned_ports(protocol, task.role.name, task.last.id))
            self._placed[task.last.id] = (framework, task)
        return True

    def _notify_hosts(self, placed: Iterable[tuple[Framework, Task]], stopped: Iterable[TaskAttemptState]) -> None:
        """Gives tasks to the hosts, and stops attempts there. A task that the hosts refuse has ended."""
        by_framework: dict[str, list[Task]] = {}
        frameworks = {}
        for framework, task in placed:
            by_framework.setdefault(framework.name, []).append(task)
            frameworks[framework.name] = framework
        for name, tasks in by_framework.items():
            try:
                makers = self._attempts.attempts(frameworks[name], tasks)
            except Exception as error:
                self._refuse(tasks, error)
                continue
            for task, make in zip(tasks, makers, strict=True):
                try:
                    self.tasks.start(make())
                except Exception as error:
                    self._refuse([task], error)
        for one in stopped:
            self.tasks.stop(one.id)

    def _refuse(self, tasks: Iterable[Task], error: Exception) -> None:
        log.error("a task cannot start", exc_info=error)
        for task in tasks:
            self.ended(task.last.id, TaskExit(_CANNOT_START, f"The task cannot start: {error}"))

    def _wake(self, seconds: float) -> None:
        if self._alarm:
            self._alarm.cancel()
        self._alarm = asyncio.get_running_loop().call_later(seconds, self._queue_event, lambda: None)

    def _load(self) -> None:
        """Loads all jobs that have not ended from disk."""
        self._allocations.clear()
        self._placed.clear()
        self._waiting.clear()
        self._frameworks = {framework.name: framework for framework in self._store.living()}
        for framework in self._frameworks.values():
            self._waiting[framework.name] = framework
            for task in framework.tasks.values():
                last = task.last
                if last.state in PLACED:
                    self._placed[last.id] = (framework, task)
                    self._allocations.allocate(
                        last.id, framework.policy.virtual_cluster, role_needs(task.role), last.address
                    )
