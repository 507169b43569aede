# SPDX-License-Identifier: Apache-2.0
"""The cause of a failed run, from what platforms and launchers say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from components.platform.causes import find_cause, reason_of
from components.platform.runs import NodeRun
from components.platform.status import NodeStatus, RunStatus
from launcher.exits import ALSO_FAILED, MEMORY_SYMPTOM, PEER_SYMPTOM, has_lost_peer

NAMES = ("main-0", "worker-0", "worker-1")
KILLED = "ended with SIGKILL (code 137)"
MEMORY = "the kernel ended 1 of its processes because the node used all its memory, 2.0 GiB"
LOST_PEER = f"ended with code 1: {PEER_SYMPTOM}"


def failed(reason: str, **more: Any) -> dict[str, Any]:
    return {"state": "failed", "reason": reason, **more}


def stopped(culprit: int, own: str = "") -> dict[str, Any]:
    """A rank that was ended; `own`: how it had failed itself before."""
    reason = f"rank {culprit} ({NAMES[culprit]}) failed first, with code 1"
    also = f"; rank 7 (worker-6) {ALSO_FAILED} {own}" if own else ""
    return {"state": "stopped", "reason": f"{reason}{also}", "culprit": culprit}


SUCCEEDED = {"state": "succeeded", "reason": ""}


def seen(*statuses: Any, details: Sequence[str] = ()) -> RunStatus:
    """A run with two or three nodes."""
    nodes = []
    for rank, status in enumerate(statuses):
        state = "SUCCEEDED" if status["state"] == "succeeded" else "FAILED"
        own = details[rank] if rank < len(details) else ""
        nodes.append(NodeStatus(rank, NodeRun(NAMES[rank], f"r{rank}", state, own), "", None, status))
    return RunStatus("s", "job", "base", 1, datetime(2026, 5, 1, tzinfo=UTC), tuple(nodes))


# What users saw in forty-one failed runs; the last column is what is known now.
CASES: dict[str, tuple[RunStatus, str]] = {
    "out of memory, in the rank that failed first": (
        seen(stopped(1), failed(KILLED), stopped(1), details=("", f"The job run exited with code 137: {MEMORY}", "")),
        f"rank 1 (worker-0) failed first: {MEMORY}; {KILLED}",
    ),
    "out of memory, but another rank reported first": (
        seen(failed(LOST_PEER), stopped(0, "SIGKILL (code 137)"), details=("", f"Node 1 of group w: killed: {MEMORY}")),
        f"rank 1 (worker-0) is the cause: {MEMORY}",
    ),
    "out of memory that ended the launcher too": (
        seen(stopped(1), {"state": "running"}, details=("", f"The job run was killed by SIGKILL: {MEMORY}")),
        f"rank 1 (worker-0) failed first, with code 1: The job run was killed by SIGKILL: {MEMORY}",
    ),
    "out of memory on OpenPAI": (
        seen(stopped(1), failed(KILLED), details=("", "exit code -1200: the task used more memory than it asked for")),
        f"rank 1 (worker-0) failed first: the task used more memory than it asked for; {KILLED}",
    ),
    "out of memory that only the launcher saw": (
        seen(failed(LOST_PEER), stopped(0, f"SIGKILL (code 137): {MEMORY_SYMPTOM}")),
        f"rank 1 (worker-0) is the cause: {MEMORY_SYMPTOM}",
    ),
    "out of memory that both saw": (
        seen(stopped(1), failed(f"{KILLED}: {MEMORY_SYMPTOM}"), details=("", MEMORY)),
        f"rank 1 (worker-0) failed first: {MEMORY}; {KILLED}",
    ),
    "out of memory in a run that stalls then": (
        seen(failed("stalled: no output"), failed("stalled: no output"), details=("", MEMORY)),
        f"rank 1 (worker-0) is the cause: {MEMORY}",
    ),
    "a rank ended with 0, and another one lost it": (
        seen(failed(LOST_PEER), SUCCEEDED, stopped(0)),
        f"rank 1 (worker-0) ended with 0 before the others: rank 0 (main-0) then {LOST_PEER}",
    ),
    "two ranks ended with 0": (
        seen(failed(LOST_PEER), SUCCEEDED, SUCCEEDED),
        f"ranks 1 (worker-0), 2 (worker-1) ended with 0 before the others: rank 0 (main-0) then {LOST_PEER}",
    ),
    "a rank fails by itself after others have ended with 0": (
        seen(failed("ended with code 1"), SUCCEEDED, SUCCEEDED),
        "rank 0 (main-0) failed first: ended with code 1",
    ),
    "a deadlock, where one rank's timeout ends first": (
        seen(stopped(2), stopped(2), failed(LOST_PEER)),
        f"rank 2 (worker-1) was the first to report a failure: {LOST_PEER}",
    ),
    "every rank has the same mistake": (
        seen(stopped(2, "code 1"), stopped(2, "code 1"), failed("ended with code 1")),
        "rank 2 (worker-1) was the first to report a failure: ended with code 1",
    ),
    "a rank was killed, and another one was quicker to report": (
        seen(failed(LOST_PEER), stopped(0, "SIGKILL (code 137)"), stopped(0)),
        "rank 1 (worker-0) failed: ended with SIGKILL (code 137); "
        "rank 0 (main-0) reported first that it had lost a connection",
    ),
    "a rank was killed, and another one ended with words of its own": (
        seen(failed("ended with code 1"), stopped(0, "SIGKILL (code 137)"), stopped(0)),
        "rank 1 (worker-0) failed: ended with SIGKILL (code 137); "
        "rank 0 (main-0) reported first that it ended with code 1",
    ),
    "an exception in one rank": (
        seen(stopped(1), failed("ended with code 1"), stopped(1)),
        "rank 1 (worker-0) failed first: ended with code 1",
    ),
    "a lost machine": (
        seen({"state": "stopped", "reason": "stopped: rank 1 (worker-0) was lost", "culprit": 1}, {"state": "running"},
             details=("", "its instance i-1 is gone")),
        "rank 1 (worker-0) was lost: its instance i-1 is gone",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_cause_is_named(name: str) -> None:
    run, words = CASES[name]
    found = find_cause(run)
    assert found is not None
    assert found.words == words


@pytest.mark.parametrize(
    "details",
    ["The job run exited with code 1", "exit code 139: the program reached memory that is not its own (SIGSEGV)",
     "the program failed on a machine whose GPU reports memory errors", "no room here", ""],
)  # fmt: skip
def test_other_words_of_a_platform_are_no_lack_of_memory(details: str) -> None:
    (node,) = seen(failed("ended with code 1"), details=(details,)).nodes
    assert reason_of(node) == "ended with code 1"


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: [gloo/transport/tcp/pair.cc:525] Connection closed by peer [10.20.0.4]:29512",
        "Gloo connectFullMesh failed with [./gloo/transport/tcp/pair.cc:144] no error",
        "Timed out waiting 1800000ms for recv operation to complete",
        "RuntimeError: Nanny failed to start.",
        "distributed.scheduler.KilledWorker: Attempted to run task 'f-0' on 4 different workers",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
    ],
)
def test_a_lost_connection_is_recognized(line: str) -> None:
    assert has_lost_peer(line)


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: x", "Unable to find address for: eth7", "OSError: [Errno 28] No space left on device",
        "op.preamble.length <= op.nbytes. 13336 vs 8", "ModuleNotFoundError: No module named 'connection'", "",
    ],
)  # fmt: skip
def test_another_failure_is_no_lost_connection(line: str) -> None:
    assert not has_lost_peer(line)
