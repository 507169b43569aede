# SPDX-License-Identifier: Apache-2.0
"""The faults with which a rehearsal disturbs runs, and how each is drawn: a victim, and a moment within the time that
the undisturbed run took."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from components.platform.evidence import rule_mutations
from localcloud import admin
from trainyard.rehearsal.judgement import Observations
from trainyard.rehearsal.repeatable_runs import RepeatableRun

# How long the object store is lost.
_OUTAGE_SECONDS = 15.0
# A stopped process is noticed by the launchers' watch for stalls. A minute is the shortest that a stack file can say.
_STALL_MINUTES = 1
# The part of the undisturbed run's time in which processes are signalled.
_EARLIEST, _LATEST = 0.2, 0.8
_DISTURBER = Path(__file__).with_name("disturber.py").read_text("utf-8").partition("# ---\n")[2]


@dataclass
class Outage:
    """Something of the cloud that is gone from `after` seconds on, for `lasts` seconds. `struck`: whether anything was
    refused because of it, if that is counted."""

    begin: Callable[[], AbstractContextManager[object]] = nullcontext
    after: float = 0.0
    lasts: float = float("inf")
    struck: Callable[[], bool] = lambda: True
    _there: ExitStack = field(default_factory=ExitStack)
    _began: bool = False

    def follow(self, seconds: float) -> None:
        """Begins or ends it. `seconds`: how long the run has been there."""
        if not self._began and seconds >= self.after:
            self._began = True
            self._there.enter_context(self.begin())
        if seconds >= self.after + self.lasts:
            self.end()

    def end(self) -> None:
        self._there.close()


@dataclass(frozen=True)
class Disturbance:
    """A drawn fault. `run`: what is started. By default, nothing of the cloud is gone."""

    words: str
    run: RepeatableRun
    outage: Outage = field(default_factory=Outage)


Draw = Callable[[RepeatableRun, Observations, random.Random, float], Disturbance | None]


def _draw_signal(name: str, what: str) -> Draw:
    def draw(run: RepeatableRun, seen: Observations, chance: random.Random, seconds: float) -> Disturbance | None:
        after = chance.uniform(_EARLIEST, _LATEST) * seconds
        victim = chance.choice([node.name for node in run.run.nodes if node.launch["command"]])
        disturber = ["{python}", "-c", _DISTURBER, name, f"{after:.2f}"]
        nodes = []
        for node in run.run.nodes:
            start = [*disturber, *node.launch["start"]] if node.name == victim else node.launch["start"]
            nodes.append(replace(node, launch={**node.launch, "start": start, "stallMinutes": _STALL_MINUTES}))
        words = f"the processes of {victim} are {what} {after:.1f} s after the node began"
        return Disturbance(words, replace(run, run=replace(run.run, nodes=tuple(nodes))))

    return draw


def _draw_closed_rule(
    run: RepeatableRun, seen: Observations, chance: random.Random, seconds: float
) -> Disturbance | None:
    """None if no rule carried anything. Half of the rules are gone before the run begins."""
    used = [one for one in rule_mutations(seen.traffic.rules) if one.kind == "deleted" and one.before.connections]
    if not used or not seen.traffic.enforced:
        return None
    closed, after = chance.choice(used), chance.choice([0.0, chance.uniform(0.0, _LATEST) * seconds])
    when = f"{after:.1f} s after the run was started" if after else "before the run is started"
    outage = Outage(lambda: run.platform.without(run.cloud, closed), after)
    return Disturbance(f"the rule {closed.before.title} is removed {when}", run, outage)


def _draw_lost_store(
    run: RepeatableRun, seen: Observations, chance: random.Random, seconds: float
) -> Disturbance | None:
    after = chance.uniform(0.0, _LATEST) * seconds
    outage = _cloud_outage(run, "status", operations="*Object*", status=503)
    outage.after, outage.lasts = after, _OUTAGE_SECONDS
    words = f"the object store answers with 503 for {_OUTAGE_SECONDS:.0f} s, {after:.1f} s after the run was started"
    return Disturbance(words, run, outage)


def _draw_no_capacity(run: RepeatableRun, seen: Observations, _: random.Random, seconds: float) -> Disturbance | None:
    outage = _cloud_outage(run, "no-capacity", shape="*", times=1)
    return Disturbance("the first machine is out of capacity", run, outage)


def _cloud_outage(run: RepeatableRun, kind: str, **settings: object) -> Outage:
    """One of the faults of `trainyard cloud faults`."""
    strikes = 0

    @contextmanager
    def begin() -> Iterator[None]:
        nonlocal strikes
        fault = admin.add_fault(run.cloud, kind, **settings)
        try:
            yield
        finally:
            strikes = sum(one["done"] for one in admin.list_faults(run.cloud) if one["id"] == fault["id"])
            admin.clear_faults(run.cloud, fault["id"])

    return Outage(begin, struck=lambda: strikes > 0)


FAULTS: Mapping[str, Draw] = {
    "killed": _draw_signal("SIGKILL", "killed"),
    "stopped": _draw_signal("SIGSTOP", "stopped"),
    "rule closed": _draw_closed_rule,
    "store lost": _draw_lost_store,
    "no capacity": _draw_no_capacity,
}
