# SPDX-License-Identifier: Apache-2.0
"""Makes the report from a rehearsal's evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from components.platform.evidence import AccessFacts, PlannedNeeds, RecordedCall
from components.platform.traffic import Traffic, drops, wanted_drops
from components.values.protocols import protocol_name
from trainyard.rehearsal.model import (
    ENFORCED,
    FlowResult,
    RankResult,
    RankSeen,
    RefusedResult,
    Rehearsal,
    RehearsalVerdict,
    RuleResult,
    RunResult,
    RunSeen,
    StatementResult,
)
from trainyard.rehearsal.mutations import join_titles
from trainyard.rehearsal.node_load import explain_idle_node, has_carried

SUCCEEDED = "SUCCEEDED"
# The launcher's states before its rank has joined the others.
_BEFORE = (None, "waiting")


@dataclass(frozen=True, slots=True)
class Observations:
    """All evidence of a rehearsal, and the needs of the plan."""

    stack: str
    seconds: float
    runs: tuple[RunSeen, ...]
    traffic: Traffic
    calls: tuple[RecordedCall, ...]
    access: AccessFacts
    planned: PlannedNeeds
    not_proven: tuple[str, ...]


def judge_rehearsal(seen: Observations) -> Rehearsal:
    """The report, without the proof."""
    dropped = drops(seen.traffic)
    runs = tuple(_run(run, seen) for run in seen.runs)
    enforced = seen.traffic.enforced
    return Rehearsal(
        stack=seen.stack,
        verdict=overall_verdict([*(run.verdict for run in runs), *_firewall(seen)]),
        seconds=seen.seconds,
        runs=runs,
        firewall=ENFORCED if enforced else f"not enforced: {seen.traffic.reason}",
        rules=tuple(_rules(seen.traffic)),
        flows=tuple(_flows(seen.traffic)),
        dropped=dropped,
        statements=tuple(_statements(seen)),
        refused=tuple(_refused(seen.calls)),
        not_proven=(*seen.not_proven, *(line for run in seen.runs for line in run.local_only)),
    )


def _firewall(seen: Observations) -> Iterator[RehearsalVerdict]:
    """Without a firewall the plan's port rules were not rehearsed, even if the runs passed."""
    if any(run.ranks for run in seen.runs) and not seen.traffic.enforced:
        yield "not rehearsed"


def overall_verdict(verdicts: Sequence[RehearsalVerdict]) -> RehearsalVerdict:
    """Failed if anything failed, and passed only if everything was rehearsed. A stack without runs passes."""
    order: tuple[RehearsalVerdict, ...] = ("failed", "not rehearsed", "passed")
    return next((verdict for verdict in order if verdict in verdicts), "passed")


def _run(run: RunSeen, seen: Observations) -> RunResult:
    ranks = tuple(_rank(rank, seen.traffic) for rank in run.ranks)
    because = (run.reason,) if run.reason else tuple(_why_failed(run, ranks, seen)) or tuple(_idle_nodes(run))
    verdict: RehearsalVerdict = "not rehearsed" if run.reason else "failed" if because else "passed"
    steps = [rank.first_step_seconds for rank in ranks if rank.first_step_seconds is not None]
    return RunResult(
        run.job, run.run, run.framework, verdict, because, run.code, run.environment, ranks,
        max(steps) if steps else None, run.artifacts, run.last_lines if verdict == "failed" else (),
    )  # fmt: skip


def _rank(rank: RankSeen, traffic: Traffic) -> RankResult:
    status = rank.launcher_status or {}
    step = status.get("firstStepSeconds")
    return RankResult(
        rank=rank.node.rank,
        name=rank.node.name,
        role=rank.node.role,
        address=rank.node.address,
        state=rank.state,
        joined=status.get("state") not in _BEFORE or _has_connected(rank, traffic) or rank.state == SUCCEEDED,
        finished=rank.state == SUCCEEDED,
        first_step_seconds=float(step) if isinstance(step, int | float) else None,
        note=rank.details or str(status.get("reason") or ""),
        carried=has_carried(rank.duty, rank.load, rank.idle),
        load=rank.load,
        idle=rank.idle,
    )


def _has_connected(rank: RankSeen, traffic: Traffic) -> bool:
    """Whether the rank had a connection with another node."""
    others = {node.title for node in traffic.nodes} - {rank.node.title}
    ends = ({flow.source_name, flow.target_name} for flow in traffic.flows)
    return any(rank.node.title in pair and pair & others for pair in ends)


def _why_failed(run: RunSeen, ranks: Sequence[RankResult], seen: Observations) -> Iterator[str]:
    """Reasons why a run failed. Dropped connections and missing permissions come first: they are the usual causes."""
    failed = [rank for rank in ranks if not rank.finished]
    if run.failed:
        yield run.failed
    if not failed and not run.failed:
        return
    titles = {rank.node.title for rank in run.ranks} | {f"{run.job}/{run.run}"}
    callers = titles | {rank.node.machine for rank in run.ranks}
    blocked = tuple(flow for flow in seen.traffic.dropped if {flow.source_name, flow.target_name} & titles)
    for one in wanted_drops(replace(seen.traffic, dropped=blocked)):
        yield f"{one.pair} was dropped: {one.missing}"
    for call in seen.calls:
        if not call.allowed and call.who in callers:
            yield f"{call.who} lacks {', '.join(call.missing)} for {call.operation}"
    for rank in failed:
        joined = "" if rank.joined else ", and never joined"
        yield f"rank {rank.rank} ({rank.name}) ended as {rank.state}{joined}{f': {rank.note}' if rank.note else ''}"


def _idle_nodes(run: RunSeen) -> Iterator[str]:
    """The nodes of a successful run that the framework should have used, but did not."""
    for rank in run.ranks:
        if rank.load is not None and has_carried(rank.duty, rank.load, rank.idle) is False:
            why = explain_idle_node(rank.duty, rank.load, rank.idle)
            yield f"rank {rank.node.rank} ({rank.node.name}) carried nothing: {why}"


def _rules(traffic: Traffic) -> Iterator[RuleResult]:
    own = frozenset(node.address for node in traffic.nodes)
    for rule in traffic.rules:
        pairs = (traffic.pair(flow) for flow in traffic.flows if rule.let_through(flow, own))
        carried = tuple(dict.fromkeys(pairs)) if rule.connections else ()
        yield RuleResult(
            rule.title, rule.description, rule.connections, carried, rule.direction, protocol_name(rule.protocol),
            rule.peer, rule.ports,
        )  # fmt: skip


def _flows(traffic: Traffic) -> Iterator[FlowResult]:
    own = frozenset(node.address for node in traffic.nodes)
    for flow in traffic.flows:
        yield FlowResult(
            traffic.pair(flow), flow.direction, protocol_name(flow.protocol), flow.port, flow.peer, flow.peer in own,
            flow.count,
        )  # fmt: skip


def _statements(seen: Observations) -> Iterator[StatementResult]:
    for policy in seen.access.policies:
        for text in policy.statements:
            resting = [call for call in seen.calls if call.allowed and call.rests_on(policy.name, text)]
            guessed = {
                permission
                for call in resting
                for permission, name, by in call.by
                if (name, by) == (policy.name, text) and permission in seen.access.inferred(call)
            }
            yield StatementResult(
                policy=policy.name,
                statement=text,
                why=seen.planned.why(text),
                calls=sum(call.times for call in resting),
                operations=tuple(dict.fromkeys(call.operation for call in resting)),
                inferred=tuple(sorted(guessed)),
            )


def _refused(calls: Sequence[RecordedCall]) -> Iterator[RefusedResult]:
    times: dict[tuple[str, str, tuple[str, ...]], int] = {}
    for call in calls:
        if not call.allowed:
            key = (call.who, call.operation, call.missing)
            times[key] = times.get(key, 0) + call.times
    for (who, operation, missing), count in times.items():
        yield RefusedResult(who, operation, missing, count)


def summary(report: Rehearsal) -> str:
    """One line with the verdict and the counts."""
    counts: Mapping[str, int] = {
        verdict: sum(run.verdict == verdict for run in report.runs) for verdict in ("passed", "failed", "not rehearsed")
    }
    counted = join_titles(
        f"{count} run{'' if count == 1 else 's'} {verdict}" for verdict, count in counts.items() if count
    )
    return f"{report.stack}: {report.verdict.upper()} ({counted or 'no runs'}; {report.seconds:.0f} s)"
