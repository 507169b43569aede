# SPDX-License-Identifier: Apache-2.0
"""Evidence about runs, in few words, for tests of the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from components.platform.runs import NodeRun
from components.platform.status import ConnectionsSeen, NodeStatus, RunStatus
from components.platform.traffic import DroppedResult
from launcher.exits import PEER_SYMPTOM
from trainyard.why.model import RunEvidence

NAMES = ("main-0", "worker-0", "worker-1", "worker-2")
LOST_PEER = f"ended with code 1: {PEER_SYMPTOM}"
RECV = "RuntimeError: [../third_party/gloo/pair.cc:525] Timed out waiting 40000ms for recv operation to complete"


def stack(function: str, line: int, waits: str = "", file: str = "train.py", cause: str = "failure") -> dict[str, Any]:
    """A rank's status with a stack. `waits`: the innermost function, if that is another one."""
    where = {"function": function, "file": file, "line": line}
    inner = {"function": waits or function, "file": "distributed_c10d.py" if waits else file, "line": 2501}
    return {"stacks": [{"object": "stacks/0-1.txt", "cause": cause, "at": "", "request": "", "where": where,
                        "waits": inner}]}  # fmt: skip


def failed(reason: str = "ended with code 1", **more: Any) -> dict[str, Any]:
    return {"state": "failed", "reason": reason, **more}


def stopped(culprit: int, code: int = 1, **more: Any) -> dict[str, Any]:
    reason = f"stopped: rank {culprit} ({_name(culprit)}) failed with code {code}"
    return {"state": "stopped", "reason": reason, "culprit": culprit, **more}


def running(**more: Any) -> dict[str, Any]:
    return {"state": "running", **more}


SUCCEEDED: Mapping[str, Any] = {"state": "succeeded", "reason": ""}
_STATES = {"succeeded": "SUCCEEDED", "running": "IN_PROGRESS", "waiting": "IN_PROGRESS"}


def dropped(pair: str = "worker-0 -> main-0 tcp 29400", packets: int = 33) -> DroppedResult:
    return DroppedResult(pair, packets, f"no egress rule of {pair.partition(' ')[0]} lets it through")


def seen(
    *statuses: Mapping[str, Any] | None,
    details: Sequence[str] = (),
    drops: Sequence[DroppedResult] = (),
    flow_log: bool = False,
    output: Mapping[int, Sequence[str]] | None = None,
    launcher: Mapping[int, Sequence[str]] | None = None,
    states: Sequence[str] = (),
    outside_words: bool = True,
    **more: Any,
) -> RunEvidence:
    """A run with a node for each status. By default the platform knows the exit code of each node that failed."""
    nodes = []
    for rank, status in enumerate(statuses):
        state = states[rank] if states else _STATES.get((status or {}).get("state", ""), "FAILED")
        own = details[rank] if rank < len(details) else "The job run exited with code 1" if state == "FAILED" else ""
        ended = f"2026-05-01T12:00:0{min(rank, 9)}+00:00" if state == "FAILED" else None
        nodes.append(
            NodeStatus(rank, NodeRun(_name(rank), f"r{rank}", state, own, finished_at=ended), "", None, status)
        )
    connections = ConnectionsSeen(tuple(drops), None if flow_log else 7) if drops or flow_log else None
    run = RunStatus("s", "job", "base", 1, datetime(2026, 5, 1, tzinfo=UTC), tuple(nodes), connections,
                    told_by_nodes=not outside_words)  # fmt: skip
    lines = {rank: tuple(text) for rank, text in (output or {}).items()}
    own_lines = {rank: tuple(text) for rank, text in (launcher or {}).items()}
    return RunEvidence(run, lines, own_lines, **more)


def _name(rank: int) -> str:
    return NAMES[rank] if rank < len(NAMES) else f"worker-{rank - 1}"


def traceback(words: str, line: int = 11, function: str = "evaluate", file: str = "/work/train.py") -> list[str]:
    return [
        "Traceback (most recent call last):",
        f'  File "{file}", line {line}, in {function}',
        "    step(batch)",
        words,
    ]


def library_traceback(words: str, line: int = 41) -> list[str]:
    """An exception that a library for collective operations raised."""
    return [
        "Traceback (most recent call last):",
        f'  File "/work/train.py", line {line}, in <module>',
        "    dist.all_reduce(tensor)",
        '  File "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", line 2501, in all_reduce',
        "    work.wait()",
        words,
    ]
