# SPDX-License-Identifier: Apache-2.0
"""Starts each job once more with a preflight and a command that does nothing, and reports each planned connection.

The runs that a rehearsal judges have their preflight off: its connections would count as evidence. These starts come
after all evidence has been read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

from components.plan.model import JobPlan, Plan
from components.platform.status import RunStatus
from launcher.closed_ports import unpack_ranks
from launcher.expects import OFF, ON
from trainyard.rehearsal.judgement import SUCCEEDED
from trainyard.rehearsal.model import ConnectionResult, PreflightResult
from trainyard.rehearsal.repeatable_runs import RepeatableRun, replace_attempt

# No other run of a rehearsal has this number.
_ATTEMPT = 8000
_LONGEST_MINUTES = 3.0
_NOTHING = {"start": [], "wrap": [], "awaits": [], "command": ["{python}", "-c", ""]}


def run_preflights(again: Sequence[RepeatableRun], written: Plan) -> tuple[PreflightResult, ...]:
    """One run of each job that has several nodes, all at once. `written`: the team's own plan, which says whether the
    real runs are tested."""
    chosen: dict[str, RepeatableRun] = {}
    for run in again:
        if run.job.nodes > 1 and written.jobs[run.job.name].expects["preflight"] != OFF:
            chosen.setdefault(run.job.name, _only_tested(run))
    started = [(run, run.start()) for run in chosen.values()]
    results = []
    for run, start in started:
        run.tell(f"rehearse: testing the planned connections of {run.job.name}/{run.run.name}")
        seen, why = run.watch_to_end(start)
        results.append(judge_preflight(run.job, f"{run.job.name}/{run.run.name}", seen, start.refused or why))
    return tuple(results)


def _only_tested(run: RepeatableRun) -> RepeatableRun:
    """The run with documents of nodes that meet the others, test, and end: no service, and nothing to wait for."""
    other, nodes = replace_attempt(run, _ATTEMPT), []
    for node in other.run.nodes:
        launch = {key: value for key, value in node.launch.items() if key != "awaitsCommand"}
        roles = [{**role, "service": False} for role in launch["roles"]]
        nodes.append(replace(node, launch={**launch, **_NOTHING, "roles": roles}))
    job = replace(other.job, expects={**other.job.expects, "preflight": ON})
    return replace(
        other, job=job, run=replace(other.run, nodes=tuple(nodes)), minutes=min(other.minutes, _LONGEST_MINUTES)
    )


def judge_preflight(job: JobPlan, title: str, seen: RunStatus | None, why: str) -> PreflightResult:
    """What the nodes' status objects say about each planned connection. Pure."""
    nodes = seen.nodes if seen is not None else ()
    tests = {node.rank: test for node in nodes if (test := (node.launcher_status or {}).get("preflight"))}
    findings = tuple(dict.fromkeys(text for test in tests.values() for text in test["findings"]))
    if not findings and not why:
        ended = next((node.run.details for node in nodes if node.run.state != SUCCEEDED), "")
        why = ended or ("" if any(test["connections"] for test in tests.values()) else "no port could be tested")
    known = {} if why else {rank: test for rank, test in tests.items() if test["connections"]}
    return PreflightResult(title, tuple(_tested_connections(job, known)), findings, why)


def _tested_connections(job: JobPlan, tests: Mapping[int, Mapping[str, Any]]) -> Iterator[ConnectionResult]:
    launch = next(iter(job.runs.values())).nodes[0].launch
    roles = [(role["name"], number) for role in launch["roles"] for number in range(role["replicas"])]
    for row in job.expects["connections"]:
        ports = launch["ports"][row["label"]]["range"]
        words = "-".join(map(str, dict.fromkeys(ports))) if ports else "any that is reserved"
        closed: dict[int, set[int]] = {}
        for rank, test in tests.items():
            texts = (text.split("/") for text in test["closed"])
            closed[rank] = {
                other for label, _, ranks in texts if label == row["label"] for other in unpack_ranks(ranks)
            }
        for (source, (role, number)), (target, (other, index)) in permutations(enumerate(roles), 2):
            if role in row["from"] and other in row["to"]:
                is_open = target not in closed[source] if source in closed else None
                yield ConnectionResult(f"{role}-{number}", f"{other}-{index}", row["label"], words, is_open)
