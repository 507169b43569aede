# SPDX-License-Identifier: Apache-2.0
"""What the judge makes of evidence: the cause, the ranks, and how certain that is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from launcher.exits import ALSO_FAILED
from tests.unit.trainyard.why.evidence import (
    LOST_PEER,
    RECV,
    SUCCEEDED,
    dropped,
    failed,
    library_traceback,
    running,
    seen,
    stack,
    stopped,
    traceback,
)
from trainyard.why.judge import judge_run
from trainyard.why.model import RunEvidence, Verdict
from trainyard.why.symptoms import known_symptoms

MEMORY = "the kernel ended 1 of its processes because the node used all its memory, 2.0 GiB"
KILLED = "ended with SIGKILL (code 137)"
CLOSED = (
    "worker-0 cannot reach main-0 on TCP 29400 (rendezvous: the store where the ranks meet). Add to security list rules"
    " of subnet 10.20.0.0/24: ingress and egress TCP 29400, 10.20.0.0/24"
)
STALLED = "stalled: no output, processor, disk or network use on any rank for 1 min (`stallMinutes`)"
UNANSWERED = "the object store does not answer (503 Service Unavailable); trying for 60 s"
WAITS = stack("<module>", 41, "all_reduce")
ELSEWHERE = stack("evaluate", 11)


def judge(evidence: RunEvidence) -> Verdict:
    return judge_run(evidence, known_symptoms())


@dataclass(frozen=True)
class Case:
    evidence: RunEvidence
    kind: str
    certainty: str
    ranks: tuple[int, ...]
    words: str
    line: str = ""
    rule: str = ""


NOWHERE: dict[str, Any] = {"stacks": [{"object": "o", "cause": "failure", "where": None, "waits": None}]}


def stalled_nowhere() -> dict[str, Any]:
    return {"stacks": [{**NOWHERE["stacks"][0], "cause": "stall"}]}


def stopped_by_a_signal() -> dict[str, Any]:
    return {"stacks": [{**NOWHERE["stacks"][0], "halted": True}]}


def again(now: dict[str, Any], before: dict[str, Any] | None = None) -> dict[str, Any]:
    """Two stacks of a rank, two minutes after one another."""
    first, last = (before or now)["stacks"][0], now["stacks"][0]
    return {"stacks": [{**first, "at": "2026-05-01T12:00:00Z"}, {**last, "at": "2026-05-01T12:02:00Z"}]}


def found_before(finding: str) -> dict[str, Any]:
    return {"preflight": {"seconds": 10.0, "connections": 3, "findings": [finding], "warnings": []}}


NO_ERROR = "RuntimeError: Gloo connectFullMesh failed with [./gloo/transport/tcp/pair.cc:144] no error"
MAY_NOT_READ = "the run may not read it"
SPACE = "OSError: [Errno 28] No space left on device"
IDLE = "idle: no output, processor, disk or network use on any node for 30 min (`stallMinutes`)"
CASES: dict[str, Case] = {
    "a run of Ray whose nodes do nothing, and that does not end for it": Case(
        seen(running(reason=IDLE, **stack("<module>", 6)), running(reason=IDLE)), "stall", "unknown", (),
        f"{IDLE}; rank 0 is in <module> (train.py:6)",
    ),
    "out of memory": Case(
        seen(stopped(1), failed(KILLED), stopped(1), details=("", f"The job run exited with code 137: {MEMORY}")),
        "memory", "certain", (1,), f"rank 1 (worker-0) failed first: {MEMORY}; {KILLED}",
    ),
    "out of memory without a launcher's word": Case(
        seen(None, None, details=("", f"killed by SIGKILL: {MEMORY}")), "memory", "certain", (1,),
        "rank 1 (worker-0): killed",
    ),
    "two nodes out of memory, one after the other": Case(
        seen(None, None, details=(MEMORY, MEMORY)), "memory", "certain", (0,), f"rank 0 (main-0): {MEMORY}",
    ),
    "dropped packets count before stacks where no port was tested": Case(
        seen(stopped(1, **ELSEWHERE), failed(LOST_PEER), drops=[dropped("worker-0 -> main-0 tcp 29527")]),
        "closed port", "certain", (0, 1), "worker-0 cannot reach main-0 on TCP 29527",
    ),
    "a node reports its own lack of memory": Case(
        seen(None, None, details=("", MEMORY), outside_words=False), "memory", "likely", (1,), "rank 1 (worker-0)",
    ),
    "no image": Case(
        seen(None, None, details=("The image a:1 cannot be pulled: it does not exist",) * 2),
        "image", "certain", (0, 1), "The image a:1 cannot be pulled: it does not exist",
    ),
    "no image, or no permission to read it": Case(
        seen(None, details=(f"The image a:1 cannot be pulled: it does not exist in the registry, or {MAY_NOT_READ}",)),
        "image", "likely", (0,), MAY_NOT_READ,
    ),
    "a lost machine": Case(
        seen({"state": "stopped", "reason": "stopped: rank 1 (worker-0) was lost", "culprit": 1}, running(),
             details=("", "its instance i-1 is gone"), states=("FAILED", "FAILED"), outside_words=False),
        "machine", "certain", (1,), "rank 1 (worker-0) was lost: its instance i-1 is gone",
    ),
    "a service that may not use the subnet": Case(
        seen(None, details=("The service may not use the subnet x: a policy must let service y use z in its place",)),
        "access", "certain", (0,), "may not use the subnet", rule="let service y use z in its place",
    ),
    "a closed port, found before training": Case(
        seen(*[failed(CLOSED, **found_before(CLOSED))] * 2), "closed port", "likely", (0, 1), CLOSED,
        rule="security list rules of subnet 10.20.0.0/24: ingress and egress TCP 29400, 10.20.0.0/24",
    ),
    "a closed port, found before training and by a firewall": Case(
        seen(*[failed(CLOSED, **found_before(CLOSED))] * 2, drops=[dropped()]),
        "closed port", "certain", (0, 1), CLOSED,
    ),
    "another port than the one that was found": Case(
        seen(*[failed(CLOSED, **found_before(CLOSED))] * 2, drops=[dropped("worker-0 -> main-0 tcp 80")]),
        "closed port", "likely", (0, 1), CLOSED,
    ),
    "a port in use": Case(
        seen(failed("worker-0: TCP 29500 (data) is in use by another program", **found_before(
            "worker-0: TCP 29500 (data) is in use by another program")), stopped(0)),
        "port in use", "likely", (1,), "TCP 29500",
    ),
    "dropped packets, and a rank that lost another one": Case(
        seen(stopped(1), failed(LOST_PEER), drops=[dropped("worker-0 -> main-0 tcp 29527")]),
        "closed port", "certain", (0, 1), "worker-0 cannot reach main-0 on TCP 29527: no egress rule of worker-0",
    ),
    "dropped packets that a flow log shows": Case(
        seen(stopped(1), failed(LOST_PEER), drops=[dropped("worker-0 -> main-0 tcp 29527")], flow_log=True),
        "closed port", "certain", (0, 1), "worker-0 cannot reach main-0 on TCP 29527",
    ),
    "dropped packets of other nodes": Case(
        seen(failed(LOST_PEER), stopped(0), stopped(0), drops=[dropped("worker-0 -> worker-1 tcp 29527")]),
        "closed port", "likely", (1, 2), "worker-0 cannot reach worker-1",
    ),
    "dropped packets, but an exception": Case(
        seen(stopped(1), failed(), drops=[dropped()], output={1: traceback("ValueError: no")}),
        "exception", "certain", (1,), "ended with code 1: ValueError: no (train.py:11, in evaluate)", "train.py:11",
    ),
    "dropped packets of a living run without progress": Case(
        seen(running(), running(), drops=[dropped()]), "closed port", "likely", (0, 1), "worker-0 cannot reach main-0",
    ),
    "dropped packets of a living run that makes progress": Case(
        seen(running(progress={"step": 3}), running(), drops=[dropped()]), "none", "unknown", (), "nothing is known",
    ),
    "dropped packets, although all ports of the plan were open": Case(
        seen(stopped(1, preflight={"connections": 3}), failed(LOST_PEER), drops=[dropped("worker-0 -> main-0 tcp 80")]),
        "closed port", "likely", (0, 1), "worker-0 cannot reach main-0 on TCP 80",
    ),
    "a deadlock with dropped packets that nobody needs": Case(
        seen(stopped(2, **WAITS, preflight={"connections": 3}), stopped(2, **ELSEWHERE), failed(LOST_PEER),
             drops=[dropped("worker-0 -> main-0 tcp 80")]),
        "deadlock", "likely", (1,), "rank 1 is in evaluate (train.py:11)", "train.py:11",
    ),
    "a deadlock that a timeout ended": Case(
        seen(stopped(2, **WAITS), stopped(2, **ELSEWHERE), failed(LOST_PEER), output={2: library_traceback(RECV)}),
        "deadlock", "certain", (1,),
        "rank 2 waited too long for another rank; rank 0 waits in all_reduce (train.py:41); "
        "rank 1 is in evaluate (train.py:11)", "train.py:11",
    ),
    "a deadlock in which the others' connections broke with the first failure": Case(
        seen(stopped(2), stopped(2, **ELSEWHERE), failed(LOST_PEER),
             output={0: ["RuntimeError: Connection closed by peer"], 2: library_traceback(RECV)}),
        "deadlock", "certain", (1,), "rank 1 is in evaluate (train.py:11)", "train.py:11",
    ),
    "a timeout of something else while the others go on": Case(
        seen(stopped(2, **WAITS), stopped(2, **ELSEWHERE), failed(LOST_PEER), output={2: [
            *library_traceback("requests.exceptions.ConnectTimeout: timed out", 5)[:2],
            '  File "/usr/lib/python3/dist-packages/requests/adapters.py", line 3, in send', "    raise",
            "requests.exceptions.ConnectTimeout: timed out"]}),
        "exception", "likely", (2,), "ConnectTimeout", "train.py:5",
    ),
    "all but one are in the same place": Case(
        seen(failed(STALLED, **stack("exchange", 8)), failed(STALLED, **stack("exchange", 8)),
             failed(STALLED, **ELSEWHERE)),
        "deadlock", "likely", (2,), "ranks 0, 1 are in exchange (train.py:8); rank 2 is in evaluate", "train.py:11",
    ),
    "one waits for the others, which are elsewhere": Case(
        seen(failed(STALLED, **ELSEWHERE), failed(STALLED, **ELSEWHERE), failed(STALLED, **WAITS)),
        "stall", "unknown", (), "rank 2 waits in all_reduce",
    ),
    "a deadlock that the launchers ended": Case(
        seen(failed(STALLED, **WAITS), failed(STALLED, **ELSEWHERE), failed(STALLED, **WAITS)),
        "deadlock", "likely", (1,), "ranks 0, 2 wait in all_reduce (train.py:41); rank 1 is in evaluate (train.py:11)",
        "train.py:11",
    ),
    "a living deadlock whose waiting ranks are idle": Case(
        seen(running(reason="idle: no output", **WAITS), running(reason="idle: no output", **WAITS),
             running(**stack("spin", 7))),
        "deadlock", "likely", (2,), "rank 2 is in spin (train.py:7)", "train.py:7",
    ),
    "a living run between two operations": Case(
        seen(running(**WAITS), running(**ELSEWHERE), running(**WAITS)), "none", "unknown", (), "rank 1 is in evaluate",
    ),
    "a deadlock in which the victims were ending when they were asked": Case(
        seen(stopped(2, **NOWHERE), stopped(2, **ELSEWHERE), failed(LOST_PEER), output={2: library_traceback(RECV)}),
        "deadlock", "certain", (1,), "rank 1 is in evaluate (train.py:11)", "train.py:11",
    ),
    "a stopped process, and timeouts of all others": Case(
        seen(stopped(2), stopped(2, **NOWHERE), failed(LOST_PEER), output={
            0: ["RuntimeError: Connection closed by peer"], 2: library_traceback(RECV)}),
        "no answer", "likely", (1,), "ranks 0, 2 waited too long for another rank; rank 1 (worker-0) gave no stack",
    ),
    "a stopped process in a stall": Case(
        seen(failed(STALLED, **WAITS), failed(STALLED, **stalled_nowhere()), failed(STALLED, **WAITS)),
        "no answer", "likely", (1,), "rank 1 does not say where",
    ),
    "a living deadlock that was asked twice": Case(
        seen(running(**again(WAITS)), running(**again(ELSEWHERE)), running(**again(WAITS))),
        "deadlock", "likely", (1,), "rank 1 is in evaluate (train.py:11)", "train.py:11",
    ),
    "a living run in which one rank has moved": Case(
        seen(running(**again(WAITS)), running(**again(ELSEWHERE, stack("evaluate", 12))), running(**again(WAITS))),
        "none", "unknown", (), "nothing is known to be wrong",
    ),
    "a stall after a rank has ended with 0": Case(
        seen(failed(STALLED, **WAITS), SUCCEEDED, failed(STALLED, **WAITS)),
        "early end", "likely", (1,), "rank 1 ended with 0 before the others",
    ),
    "a store that does not answer now": Case(
        seen({"state": "waiting"}, None, states=("IN_PROGRESS",) * 2, launcher={0: [UNANSWERED]}),
        "store", "likely", (0,), "rank 0 cannot reach the store where its nodes meet",
    ),
    "a store that did not answer for a moment": Case(
        seen(running(), running(), launcher={0: [UNANSWERED], 1: [UNANSWERED, *["later"] * 3]}),
        "none", "unknown", (), "nothing is known to be wrong",
    ),
    "dropped packets of a living run whose ports were open": Case(
        seen(running(preflight={"connections": 3}), running(), drops=[dropped()]),
        "none", "unknown", (), "nothing is known to be wrong",
    ),
    "the loopback as interface": Case(
        seen(failed(LOST_PEER), stopped(0), output={0: library_traceback(
            "RuntimeError: Gloo connectFullMesh failed with SO_ERROR: Connection refused, remote=[127.0.0.1]:29511")}),
        "interface", "likely", (), "its own loopback address",
    ),
    "another interface than the one that was tested": Case(
        seen(failed(LOST_PEER), stopped(0, preflight={"connections": 3}), output={0: library_traceback(NO_ERROR)}),
        "interface", "likely", (), "although every planned connection was open before training",
    ),
    "a mesh that failed where nothing was tested": Case(
        seen(failed(LOST_PEER), stopped(0), output={0: library_traceback(NO_ERROR)}), "lost peer", "unknown", (), "",
    ),
    "a full /dev/shm that the launcher saw": Case(
        seen(failed("ended with code 1: /dev/shm was full"), stopped(0), output={0: traceback(SPACE)}),
        "shared memory", "certain", (0,), "filled its shared memory", line="train.py:11",
    ),
    "a stopped rank of two": Case(
        seen(running(reason=IDLE, **again(stopped_by_a_signal())), running(reason=IDLE, **again(ELSEWHERE))),
        "no answer", "likely", (0,), "(train.py:11); rank 0 is stopped, by a signal or a debugger",
    ),
    "a rank that answers nothing": Case(
        seen(failed(STALLED, **WAITS), failed(STALLED), failed(STALLED, **WAITS)), "no answer", "likely", (1,),
        "rank 1 (worker-0) gave no stack",
    ),
    "all wait in the same operation": Case(
        seen(failed(STALLED, **WAITS), failed(STALLED, **WAITS)), "stall", "unknown", (), "none is elsewhere",
        "train.py:41",
    ),
    "all read the same": Case(
        seen(failed(STALLED, **stack("load", 5)), failed(STALLED, **stack("load", 5))), "stall", "certain", (0, 1),
        "ranks 0, 1 are in load (train.py:5)", "train.py:5",
    ),
    "a stall without stacks": Case(seen(failed(STALLED), failed(STALLED)), "stall", "unknown", (), STALLED),
    "a deadlock without stacks names nobody": Case(
        seen(stopped(2), stopped(2), failed(LOST_PEER), output={2: library_traceback(RECV)}),
        "lost peer", "unknown", (), "rank 2 (worker-1) was the first to report a failure",
    ),
    "an exception": Case(
        seen(stopped(1), failed(), output={1: traceback("ValueError: no")}), "exception", "certain", (1,),
        "rank 1 (worker-0) failed first: ended with code 1: ValueError: no (train.py:11, in evaluate)", "train.py:11",
    ),
    "an exception in every rank": Case(
        seen(stopped(1, reason=f"x; rank 0 {ALSO_FAILED} code 1"), failed(),
             output={0: traceback("KeyError: 1"), 1: traceback("KeyError: 1")}),
        "exception", "certain", (0, 1), "ranks 0, 1 fail alike: KeyError: 1", "train.py:11",
    ),
    "an exception in a library that speaks with other ranks": Case(
        seen(stopped(1), failed(), output={1: library_traceback("RuntimeError: something new")}),
        "exception", "likely", (1,), "RuntimeError: something new", "train.py:41",
    ),
    "an exception that is about another rank": Case(
        seen(stopped(1), failed(), output={1: library_traceback(RECV)}), "lost peer", "unknown", (), "failed first",
    ),
    "a rank that printed an exception and hangs": Case(
        seen(failed(LOST_PEER), stopped(0), output={1: traceback("ValueError: in a thread")}),
        "exception", "likely", (1,), "rank 1 (worker-0) raised ValueError: in a thread (train.py:11)", "train.py:11",
    ),
    "killed": Case(
        seen(stopped(1), failed(KILLED), details=("", "The job run exited with code 137")), "killed", "certain", (1,),
        f"rank 1 (worker-0) failed first: {KILLED}",
    ),
    "killed, as only its launcher says": Case(
        seen(stopped(1), failed(KILLED), details=("", "exit code 1: it failed")), "killed", "likely", (1,), KILLED,
    ),
    "a segmentation fault": Case(
        seen(stopped(1), failed("ended with SIGSEGV (code 139)"), details=("", "The job run exited with code 139")),
        "crash", "certain", (1,), "SIGSEGV",
    ),
    "an abort, which another rank may cause": Case(
        seen(stopped(1), failed("ended with SIGABRT (code 134)"), details=("", "The job run exited with code 134")),
        "crash", "likely", (1,), "SIGABRT",
    ),
    "an exit code": Case(seen(stopped(1), failed("ended with code 3")), "exit", "likely", (1,), "ended with code 3"),
    "a rank that ended early": Case(
        seen(failed(LOST_PEER), SUCCEEDED, stopped(0), output={0: ["RuntimeError: Connection closed by peer"]}),
        "early end", "certain", (1,), "rank 1 (worker-0) ended with 0 before the others",
    ),
    "a rank that ended early, without output": Case(
        seen(failed(LOST_PEER), SUCCEEDED, stopped(0)), "early end", "likely", (1,), "ended with 0 before the others",
    ),
    "tensors of other sizes": Case(
        seen(stopped(1), failed("ended with SIGABRT (code 134)"),
             output={1: ["terminate called", "op.preamble.length <= op.nbytes. 13336 vs 8"]}),
        "mismatch", "likely", (), "ranks disagree",
    ),
    "an interface that no node has": Case(
        seen(failed(), stopped(0), output={
            rank: library_traceback("RuntimeError: Unable to find address for: eth7") for rank in (0, 1)}),
        "interface", "certain", (0, 1), "ranks 0, 1 fail alike: each looks for a network interface", "train.py:41",
    ),
    "a full disk": Case(
        seen(stopped(1), failed(), output={1: traceback("OSError: [Errno 28] No space left on device")}),
        "disk", "likely", (1,), "it filled its disk, or its shared memory (/dev/shm): OSError:", "train.py:11",
    ),
    "a run that may not write objects": Case(
        seen(None, None, details=("The job run exited with code 78",) * 2,
             launcher={0: ["this run may not use oci://x: 404 NotAuthorizedOrNotFound: y"],
                       1: ["this run may not use oci://x: 404 NotAuthorizedOrNotFound: y"]}),
        "access", "certain", (), "ranks 0, 1 may not use the store where its nodes meet",
        rule="the statement that lets runs manage objects",
    ),
    "the maximum runtime": Case(
        seen(failed("was asked to end by SIGTERM (code 143)"), failed("was asked to end by SIGTERM (code 143)"),
             details=("The job run exceeded its maximum runtime of 5 minutes",) * 2),
        "time limit", "certain", (0, 1), "exceeded its maximum runtime",
    ),
    "the maximum runtime of a deadlock": Case(
        seen(failed("was asked to end by SIGTERM (code 143)", **WAITS), failed(STALLED, **ELSEWHERE),
             details=("The job run exceeded its maximum runtime of 5 minutes",) * 2),
        "deadlock", "likely", (1,), "rank 1 is in evaluate", "train.py:11",
    ),
    "cancelled": Case(
        seen(failed("was asked to end by SIGTERM (code 143)"), states=("CANCELED",)), "cancelled", "certain", (),
        "ended by somebody",
    ),
    "without any launcher": Case(
        seen(None, None, output={0: traceback("ValueError: no")}), "exception", "likely", (0,), "ValueError",
        "train.py:11",
    ),
    "nothing known": Case(seen(None, None), "unknown", "unknown", (), "exited with code 1"),
    "it succeeded": Case(seen(SUCCEEDED, SUCCEEDED, drops=[dropped()]), "none", "certain", (), "succeeded"),
    "it runs": Case(seen(running(), running(progress={"step": 1})), "none", "unknown", (), "nothing is known"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_verdict(name: str) -> None:
    case = CASES[name]
    found = judge(case.evidence)
    assert (found.kind, found.certainty, found.ranks, found.line) == (
        case.kind, case.certainty, case.ranks, case.line
    ), found  # fmt: skip
    assert case.words in found.cause
    assert case.rule in found.rule
    assert found.certainty != "unknown" or found.look, "an unknown cause says where to look"
    assert found.certainty == "unknown" or found.kind == "none" or found.remedy or found.look
    if found.certainty == "certain" and found.kind != "none":
        kinds = {one.kind for one in found.evidence}
        assert kinds & {"platform", "firewall", "flow log"} or len(kinds) > 1


def deadlock(culprit: int, victim: int) -> RunEvidence:
    """The victim's timeout ends first."""
    statuses = [stopped(victim, **(ELSEWHERE if rank == culprit else WAITS)) for rank in range(3)]
    statuses[victim] = failed(LOST_PEER)
    return seen(*statuses, output={victim: library_traceback(RECV)})


def of_one(culprit: int, reason: str, detail: str = "", output: list[str] | None = None) -> RunEvidence:
    statuses = [stopped(culprit) for _ in range(3)]
    statuses[culprit] = failed(reason)
    details = ["The job run exited with code 1"] * 3
    details[culprit] = detail or details[culprit]
    return seen(*statuses, details=details, output={culprit: output} if output else {})


def early_end(culprit: int, victim: int) -> RunEvidence:
    statuses: list[Any] = [stopped(victim) for _ in range(3)]
    statuses[culprit], statuses[victim] = SUCCEEDED, failed(LOST_PEER)
    return seen(*statuses, output={victim: ["RuntimeError: Connection closed by peer"]})


def silent(culprit: int) -> RunEvidence:
    return seen(*(failed(STALLED, **({} if rank == culprit else WAITS)) for rank in range(3)))


SWAPPED: dict[str, Callable[[int, int], RunEvidence]] = {
    "deadlock": deadlock,
    "memory": lambda rank, _: of_one(rank, KILLED, f"killed: {MEMORY}"),
    "killed": lambda rank, _: of_one(rank, KILLED, "exited with code 137"),
    "exception": lambda rank, _: of_one(rank, "ended with code 1", output=traceback("ValueError: no")),
    "disk": lambda rank, _: of_one(rank, "ended with code 1", output=["No space left on device"]),
    "early end": early_end,
    "no answer": lambda rank, _: silent(rank),
}


@pytest.mark.parametrize("culprit", range(3))
@pytest.mark.parametrize("kind", SWAPPED)
def test_another_culprit_is_another_verdict(kind: str, culprit: int) -> None:
    for victim in {0, 1, 2} - {culprit}:
        found = judge(SWAPPED[kind](culprit, victim))
        assert (found.kind, found.ranks) == (kind, (culprit,))


def without(kind: str, evidence: RunEvidence) -> RunEvidence:
    """The evidence without one kind."""
    if kind == "output":
        return replace(evidence, output={}, launcher_lines={})
    run = evidence.run
    if kind == "firewall":
        return replace(evidence, run=replace(run, connections=None))
    nodes = []
    for node in run.nodes:
        status = dict(node.launcher_status or {})
        if kind == "platform":
            node = replace(node, run=replace(node.run, details=""))
        elif kind == "stack":
            node = replace(node, launcher_status={key: status[key] for key in status if key != "stacks"})
        else:
            node = replace(node, launcher_status={key: status[key] for key in status if key == "stacks"})
        nodes.append(node)
    return replace(evidence, run=replace(run, nodes=tuple(nodes)))


@pytest.mark.parametrize(
    ("name", "kind", "left"),
    [
        ("out of memory", "platform", ("killed", "likely", (1,))),
        ("out of memory", "launcher", ("memory", "certain", (1,))),
        ("a closed port, found before training and by a firewall", "firewall", ("closed port", "likely", (0, 1))),
        ("a closed port, found before training and by a firewall", "launcher", ("closed port", "likely", (0, 1))),
        ("dropped packets, and a rank that lost another one", "firewall", ("lost peer", "unknown", ())),
        ("dropped packets, and a rank that lost another one", "launcher", ("closed port", "likely", (0, 1))),
        ("a deadlock that a timeout ended", "stack", ("lost peer", "unknown", ())),
        ("a deadlock that a timeout ended", "launcher", ("deadlock", "likely", (1,))),
        ("a deadlock that a timeout ended", "output", ("deadlock", "likely", (1,))),
        ("all read the same", "stack", ("stall", "unknown", ())),
        ("all read the same", "launcher", ("stall", "likely", (0, 1))),
        ("an exception", "output", ("exit", "likely", (1,))),
        ("an exception", "launcher", ("exception", "likely", (1,))),
        ("killed", "platform", ("killed", "likely", (1,))),
        ("a full disk", "launcher", ("disk", "likely", (1,))),
        ("a rank that ended early", "output", ("early end", "likely", (1,))),
        ("a run that may not write objects", "platform", ("access", "likely", ())),
        ("a run that may not write objects", "output", ("unknown", "unknown", ())),
    ],
)
def test_each_kind_of_evidence_counts(name: str, kind: str, left: tuple[str, str, tuple[int, ...]]) -> None:
    found = judge(without(kind, CASES[name].evidence))
    assert (found.kind, found.certainty, found.ranks) == left, found


@pytest.mark.parametrize(
    "printed",
    ["rank 0 (main-0) used all its memory", f"rank 0: {KILLED}", "worker-0 cannot reach main-0 on TCP 29400. Add to x",
     "[0.launcher] this run may not use the store", "stalled: no output", "preflight: worker-0"],
)  # fmt: skip
def test_what_a_rank_prints_accuses_no_other_one(printed: str) -> None:
    alone = judge(of_one(1, "ended with code 1", output=[printed]))
    assert alone.ranks == (1,)
    assert alone.certainty == "likely"
    while_it_runs = judge(replace(seen(running(), running()), output={1: (printed,)}))
    assert (while_it_runs.kind, while_it_runs.ranks) == ("none", ())
    hangs = judge(seen(failed(STALLED), failed(STALLED), output={1: [printed]}))
    assert hangs.ranks == ()
