# SPDX-License-Identifier: Apache-2.0
"""Waits for a run's state, with a timeout and with visible progress."""

import time
from collections.abc import Sequence

from components.platform.calls import Call
from components.platform.client import Runs
from components.platform.runs import UNSUCCESSFUL, NodeRun, RunSpec, overall
from launcher.escaping import terminal

_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 10.0
_GROWTH = 1.4
_SECONDS_BETWEEN_LINES = 60.0


class NotInTimeError(Exception):
    """The run did not reach its `until` before the timeout."""

    def __init__(self, minutes: float) -> None:
        super().__init__(f"{minutes:g} minutes")
        self.minutes = minutes


def reached(until: str, nodes: Sequence[NodeRun]) -> bool:
    if until == "accepted":
        return True
    if until == "started":
        return all(node.state != "ACCEPTED" for node in nodes)
    return all(node.over for node in nodes)


def broken(nodes: Sequence[NodeRun]) -> list[NodeRun]:
    """The nodes that ended without success. Nodes that ended because of another node come last."""
    lost = [node for node in nodes if node.state in UNSUCCESSFUL]
    return sorted(lost, key=lambda node: (node.state != "FAILED", node.finished_at or "9999"))


def settle(call: Call, runs: Runs, spec: RunSpec, nodes: list[NodeRun]) -> list[NodeRun]:
    """Waits until the run reaches its `until`, or one of its nodes is lost. Updates `nodes` in place."""
    minutes = {"accepted": spec.timeouts.access, "started": spec.timeouts.started}.get(
        spec.until, spec.timeouts.started + spec.timeouts.finished
    )
    watch = _Watch(call, spec)
    pause, deadline = _FIRST_PAUSE, call.deadline(minutes * 60)
    while not (broken(nodes) or reached(spec.until, nodes)):
        if time.monotonic() > deadline:
            raise NotInTimeError(minutes)
        call.stop.wait(pause)
        pause = min(pause * _GROWTH, _LONGEST_PAUSE)
        nodes[:] = runs.observe(call, nodes)
        watch.look(nodes)
    return nodes


def wait_for_end(call: Call, runs: Runs, nodes: list[NodeRun], minutes: float) -> list[NodeRun]:
    pause, deadline = _FIRST_PAUSE, call.deadline(minutes * 60)
    while not all(node.over for node in nodes):
        if time.monotonic() > deadline:
            raise NotInTimeError(minutes)
        elapsed = time.monotonic() - call.started
        call.report.status(f"waiting for {_count([n for n in nodes if not n.over])} to end, {elapsed:.0f} s so far")
        call.stop.wait(pause)
        pause = min(pause * _GROWTH, _LONGEST_PAUSE)
        nodes[:] = runs.observe(call, nodes)
    return nodes


def reason_to_wait(nodes: Sequence[NodeRun]) -> str:
    """The platform's message about nodes that have not begun, or ""."""
    waiting = (node for node in nodes if node.state == "ACCEPTED" and node.details)
    return next((terminal(node.details) for node in waiting), "")


class _Watch:
    """Reports the run's progress: always as the status line, and as a new line when it changes or takes long."""

    def __init__(self, call: Call, spec: RunSpec) -> None:
        self._call, self._spec = call, spec
        self._reported, self._reported_at = "", time.monotonic()

    def look(self, nodes: Sequence[NodeRun]) -> None:
        now, elapsed = overall(nodes), time.monotonic() - self._call.started
        states = ", ".join(f"{node.name} {node.state}" for node in nodes[:4]) + (" …" if len(nodes) > 4 else "")
        why = reason_to_wait(nodes)
        because = f": {why}" if why else ""
        self._call.report.status(f"{now} after {elapsed:.0f} s, waiting until {self._spec.until}: {states}{because}")
        if now + why != self._reported or time.monotonic() - self._reported_at > _SECONDS_BETWEEN_LINES:
            self._call.report.info(f"run {self._spec.display_name}: {now} after {elapsed:.0f} s ({states}){because}")
            self._reported, self._reported_at = now + why, time.monotonic()


def _count(nodes: Sequence[NodeRun]) -> str:
    return "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"
