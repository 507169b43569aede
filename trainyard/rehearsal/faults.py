# SPDX-License-Identifier: Apache-2.0
"""The faults with which a rehearsal disturbs runs, and how each is drawn: a victim, and a moment within the time that
the undisturbed run took."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from components.platform.calls import ProviderError, call_of
from components.platform.evidence import rule_mutations
from components.platform.rehearsal import StartedRun
from components.platform.status import RunStatus
from localcloud import admin
from trainyard.rehearsal.judgement import Observations
from trainyard.rehearsal.repeatable_runs import RepeatableRun
from trainyard.rehearsal.run_evidence import Evidence

# How long the object store is lost, and how long the notice stands that machines are taken back.
_OUTAGE_SECONDS, _NOTICE_SECONDS = 15.0, 30.0
# A stopped process is noticed by the launchers' watch for stalls. A minute is the shortest that a stack file can say.
_STALL_MINUTES = 1
# The disk that is filled. It is in memory, and has the code.
_SMALL_DISK_MEBIBYTES = 256
# The part of the undisturbed run's time in which nodes are disturbed.
_EARLIEST, _LATEST = 0.2, 0.7
_DISTURBER = Path(__file__).with_name("disturber.py").read_text("utf-8").partition("# ---\n")[2]
# The beginning of what the disturber prints when it acts.
_STRIKES = "the rehearsal disturbs this node: "
_LINES = 200

# Whether a fault struck a run that was started, and has ended.
Struck = Callable[[Evidence, StartedRun, RunStatus], bool]


@dataclass
class Outage:
    """Something of the cloud that is gone from `after` seconds on, for `lasts` seconds: a thread takes it away, because
    whoever watches the run may have to wait for it."""

    take_away: Callable[[], AbstractContextManager[object]]
    after: float = 0.0
    lasts: float = float("inf")
    _over: threading.Event = field(default_factory=threading.Event)
    _failure: list[BaseException] = field(default_factory=list)

    @contextmanager
    def around(self) -> Iterator[Callable[[], None]]:
        """Gives a function that says that the run has been started: from then on the seconds count."""
        thread: threading.Thread | None = None
        with ExitStack() as gone:
            if not self.after:
                gone.enter_context(self.take_away())

            def begin() -> None:
                nonlocal thread
                thread = threading.Thread(target=self._follow_time, args=(gone,), name="outage", daemon=True)
                thread.start()

            try:
                yield begin
            finally:
                self._over.set()
                if thread is not None:
                    thread.join()
        if self._failure:
            raise self._failure[0]

    def _follow_time(self, gone: ExitStack) -> None:
        try:
            if self.after and not self._over.wait(self.after):
                gone.enter_context(self.take_away())
            if self.lasts != float("inf") and not self._over.wait(self.lasts):
                gone.close()
        except BaseException as error:
            self._failure.append(error)


@dataclass(frozen=True)
class Disturbance:
    """A drawn fault. `run`: what is started. Without an outage, its nodes disturb themselves."""

    words: str
    run: RepeatableRun
    struck: Struck
    outage: Outage | None = None


# A disturbance, or why this run cannot have it.
Draw = Callable[[RepeatableRun, Observations, random.Random, float], Disturbance | str]


def _draw_disturber(action: str, what: str, small_disk: bool = False) -> Draw:
    def draw(run: RepeatableRun, seen: Observations, chance: random.Random, seconds: float) -> Disturbance | str:
        after = chance.uniform(_EARLIEST, _LATEST) * seconds
        able = [node for node in run.run.nodes if node.launch["command"]]
        victim, rank = chance.choice([(node, node.rank + index) for node in able for index in range(node.replicas)])
        # Nodes of a role may be started with the same document, so each one looks whether it is the victim.
        disturber = ["{python}", "-c", _DISTURBER, action, f"{after:.2f}", "{rank}", str(rank)]
        nodes = []
        for node in run.run.nodes:
            start = [*disturber, *node.launch["start"]] if node.launch["command"] else node.launch["start"]
            nodes.append(replace(node, launch={**node.launch, "start": start, "stallMinutes": _STALL_MINUTES}))

        def struck(evidence: Evidence, started: StartedRun, ended: RunStatus) -> bool:
            """Whether the victim has printed it. One that failed may have ended before its log had the line."""
            (own,) = (node for node in ended.nodes if node.rank == rank)
            try:
                lines = run.who.runs.last_lines(call_of("rehearse", run.tell), own.run, _LINES, patiently=False)
            except ProviderError:
                lines = []
            return own.run.state == "FAILED" or any(_STRIKES in line for line in lines)

        outage = _cloud_fault(run, "disk", value=_SMALL_DISK_MEBIBYTES)[0] if small_disk else None
        name = victim.name if victim.replicas == 1 else f"{victim.role}-{rank - victim.rank}"
        words = f"{what.format(name)} {after:.1f} s after the node began"
        return Disturbance(words, replace(run, run=replace(run.run, nodes=tuple(nodes))), struck, outage)

    return draw


def _draw_closed_rule(
    run: RepeatableRun, seen: Observations, chance: random.Random, seconds: float
) -> Disturbance | str:
    """Half of the rules are gone before the run begins."""
    used = [one for one in rule_mutations(seen.traffic.rules) if one.kind == "deleted" and one.before.connections]
    if not used or not seen.traffic.enforced:
        return "no rule of its security lists and groups carried anything"
    closed, after = chance.choice(used), chance.choice([0.0, chance.uniform(0.0, _LATEST) * seconds])
    when = f"{after:.1f} s after the run was started" if after else "before the run is started"
    first, last = closed.before.ports or (0, 65535)

    def struck(evidence: Evidence, started: StartedRun, ended: RunStatus) -> bool:
        return any(first <= int(row["port"]) <= last for row in evidence.dropped_now(started))

    @contextmanager
    def closing() -> Iterator[None]:
        with run.platform.without(run.cloud, closed):
            yield

    return Disturbance(f"the rule {closed.before.title} is removed {when}", run, struck, Outage(closing, after))


def _draw_lost_store(run: RepeatableRun, seen: Observations, chance: random.Random, seconds: float) -> Disturbance:
    outage, struck = _cloud_fault(run, "status", operations="*Object*", status=503)
    outage.after, outage.lasts = chance.uniform(0.0, _LATEST) * seconds, _OUTAGE_SECONDS
    words = f"the object store answers with 503 for {_OUTAGE_SECONDS:.0f} s, {outage.after:.1f} s after"
    return Disturbance(f"{words} the run was started", run, struck, outage)


def _draw_no_capacity(run: RepeatableRun, seen: Observations, _: random.Random, seconds: float) -> Disturbance:
    outage, struck = _cloud_fault(run, "no-capacity", shape="*", times=1)
    return Disturbance("the first machine is out of capacity", run, struck, outage)


def _draw_spot_notice(run: RepeatableRun, seen: Observations, chance: random.Random, seconds: float) -> Disturbance:
    outage, struck = _cloud_fault(run, "spot", shape="*")
    outage.after, outage.lasts = chance.uniform(_EARLIEST, _LATEST) * seconds, _NOTICE_SECONDS
    words = f"its spot machines get the notice that they are taken back, {outage.after:.1f} s after"
    return Disturbance(f"{words} the run was started", run, struck, outage)


def _cloud_fault(run: RepeatableRun, kind: str, **settings: object) -> tuple[Outage, Struck]:
    """One of the faults of `trainyard cloud faults`, and whether it has struck any call."""
    strikes = 0

    @contextmanager
    def added() -> Iterator[None]:
        nonlocal strikes
        fault = admin.add_fault(run.cloud, kind, **settings)
        try:
            yield
        finally:
            strikes = sum(one["done"] for one in admin.list_faults(run.cloud) if one["id"] == fault["id"])
            admin.clear_faults(run.cloud, fault["id"])

    return Outage(added), lambda evidence, started, ended: strikes > 0


FAULTS: Mapping[str, Draw] = {
    "killed": _draw_disturber("SIGKILL", "the processes of {} are killed"),
    "stopped": _draw_disturber("SIGSTOP", "the processes of {} are stopped"),
    "disk filled": _draw_disturber("FILL", "the disk of {} is filled", small_disk=True),
    "rule closed": _draw_closed_rule,
    "store lost": _draw_lost_store,
    "no capacity": _draw_no_capacity,
    "spot notice": _draw_spot_notice,
}
