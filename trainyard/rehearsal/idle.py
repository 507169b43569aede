# SPDX-License-Identifier: Apache-2.0
"""The idle run that a rehearsed run is compared with: the same nodes and services, and a command that only waits.

An idle node's traffic is the cost of joining and of heartbeats. The rehearsed run's traffic is compared with it
(trainyard/rehearsal/node_load.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from trainyard.rehearsal.evidence import Evidence
from trainyard.rehearsal.model import RunSeen
from trainyard.rehearsal.node_load import NodeLoad, largest_load
from trainyard.rehearsal.runs import RepeatableRun, replace_attempt

# Long enough to include a node's periodic work. For a longer run, the idle load is multiplied.
LONGEST_SECONDS = 60.0
_SHORTEST_SECONDS = 0.5
_ATTEMPT = 9000


def compare_with_idle(
    runs: Sequence[RunSeen], finished: Sequence[RepeatableRun], evidence: Evidence
) -> tuple[tuple[RunSeen, ...], tuple[str, ...]]:
    """The runs, with the idle loads of their service nodes, and remarks on runs that could not be compared."""
    again = {(one.job.name, one.run.name): one for one in finished}
    judged_runs: list[RunSeen] = []
    missing: list[str] = []
    for run in runs:
        one = again.get((run.job, run.run))
        if one is None or not any(rank.duty == "serves" and rank.load and rank.load.bytes for rank in run.ranks):
            judged_runs.append(run)
            continue
        idle = _idle_loads(one, _seconds(run), evidence)
        if not idle:
            what = "whether its service nodes did more than join: the idle run to compare with failed"
            missing.append(f"job {run.job}: {what}")
        ranks = (replace(rank, idle=_of_role(run, idle, rank.node.role)) for rank in run.ranks)
        judged_runs.append(replace(run, ranks=tuple(ranks)))
    return tuple(judged_runs), tuple(missing)


def _of_role(run: RunSeen, idle: Mapping[int, NodeLoad], role: str) -> NodeLoad | None:
    """The largest load of the role's idle nodes: which of several like nodes has more is chance."""
    return largest_load(idle[rank.node.rank] for rank in run.ranks if rank.node.role == role and rank.node.rank in idle)


def _seconds(run: RunSeen) -> float:
    """How long the command ran, on the node where it ran longest."""
    durations = ((rank.launcher_status or {}).get("ranSeconds") for rank in run.ranks if rank.duty != "serves")
    return max(_SHORTEST_SECONDS, *(float(one) for one in durations if isinstance(one, int | float)), 0.0)


def _idle_loads(again: RepeatableRun, seconds: float, evidence: Evidence) -> dict[int, NodeLoad]:
    """Starts the idle run, and returns its loads by rank. Empty if it failed."""
    waits = min(seconds, LONGEST_SECONDS)
    name = f"{again.job.name}/{again.run.name}"
    again.tell(f"rehearse: running {name} with a command that only waits {waits:.1f} s, to compare")
    idle = _waiting(replace_attempt(again, _ATTEMPT), waits)
    started = idle.start()
    seen, why = idle.watch_to_end(started)
    if started.refused or why or seen is None or seen.state != "SUCCEEDED":
        return {}
    return {rank: load.scaled(seconds / waits) for rank, load in evidence.loads(again.job.name, seen).items()}


def _waiting(again: RepeatableRun, seconds: float) -> RepeatableRun:
    """The same run, but every node's command (and its wrapper) is replaced with one that only waits."""
    command = ["{python}", "-c", f"import time; time.sleep({seconds:.3f})"]
    nodes = tuple(
        replace(node, launch={**node.launch, "command": command, "wrap": []}) if node.launch["command"] else node
        for node in again.run.nodes
    )
    return replace(again, run=replace(again.run, nodes=nodes))
