# SPDX-License-Identifier: Apache-2.0
"""Makes the report from a rehearsal's evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from components.platform.evidence import AccessFacts, PlannedNeeds, RecordedCall
from components.platform.traffic import Traffic, dropped_connections, needed_dropped_connections
from components.values.protocols import protocol_name
from trainyard.rehearsal.model import (
    ENFORCED,
    FlowResult,
    PreflightResult,
    RankResult,
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
    traffic = seen.traffic
    runs = tuple(_judge_run(run, seen) for run in seen.runs)
    verdicts = [run.verdict for run in runs]
    if any(run.ranks for run in seen.runs) and not traffic.enforced:
        # The plan's port rules were not rehearsed, even if the runs passed.
        verdicts.append("not rehearsed")
    own = frozenset(node.address for node in traffic.nodes)
    refused: dict[tuple[str, str, tuple[str, ...]], int] = {}
    for call in seen.calls:
        if not call.allowed:
            key = (call.who, call.operation, call.missing)
            refused[key] = refused.get(key, 0) + call.times
    rules = []
    for rule in traffic.rules:
        pairs = (traffic.pair(flow) for flow in traffic.flows if rule.let_through(flow, own))
        carried = tuple(dict.fromkeys(pairs)) if rule.connections else ()
        rules.append(
            RuleResult(
                rule.title, rule.description, rule.connections, carried, rule.direction, protocol_name(rule.protocol),
                rule.peer, rule.ports,
            )
        )  # fmt: skip
    return Rehearsal(
        stack=seen.stack,
        verdict=overall_verdict(verdicts),
        seconds=seen.seconds,
        runs=runs,
        firewall=ENFORCED if traffic.enforced else f"not enforced: {traffic.reason}",
        rules=tuple(rules),
        flows=tuple(
            FlowResult(
                traffic.pair(flow), flow.direction, protocol_name(flow.protocol), flow.port, flow.peer,
                flow.peer in own, flow.count,
            )
            for flow in traffic.flows
        ),
        dropped=dropped_connections(traffic),
        statements=tuple(_statement_results(seen)),
        refused=tuple(RefusedResult(*key, times) for key, times in refused.items()),
        not_proven=(*seen.not_proven, *(line for run in seen.runs for line in run.local_only)),
    )  # fmt: skip


def overall_verdict(verdicts: Sequence[RehearsalVerdict]) -> RehearsalVerdict:
    """Failed if anything failed, and passed only if everything was rehearsed. A stack without runs passes."""
    order: tuple[RehearsalVerdict, ...] = ("failed", "not rehearsed", "passed")
    return next((verdict for verdict in order if verdict in verdicts), "passed")


def _judge_run(run: RunSeen, seen: Observations) -> RunResult:
    titles = {node.title for node in seen.traffic.nodes}
    connected = [{flow.source_name, flow.target_name} for flow in seen.traffic.flows]
    ranks = []
    for rank in run.ranks:
        status, title = rank.launcher_status or {}, rank.node.title
        step = status.get("firstStepSeconds")
        has_connected = any(title in pair and pair & (titles - {title}) for pair in connected)
        ranks.append(
            RankResult(
                rank=rank.node.rank,
                name=rank.node.name,
                role=rank.node.role,
                address=rank.node.address,
                state=rank.state,
                joined=status.get("state") not in _BEFORE or has_connected or rank.state == SUCCEEDED,
                finished=rank.state == SUCCEEDED,
                first_step_seconds=float(step) if isinstance(step, int | float) else None,
                note=rank.details or str(status.get("reason") or ""),
                carried=has_carried(rank.duty, rank.load, rank.idle),
                load=rank.load,
                idle=rank.idle,
            )
        )
    because = (run.reason,) if run.reason else tuple(_why_failed(run, ranks, seen)) or tuple(_idle_nodes(run))
    verdict: RehearsalVerdict = "not rehearsed" if run.reason else "failed" if because else "passed"
    steps = [rank.first_step_seconds for rank in ranks if rank.first_step_seconds is not None]
    return RunResult(
        run.job, run.run, run.framework, verdict, because, run.code, run.environment, tuple(ranks),
        max(steps) if steps else None, run.artifacts, run.last_lines if verdict == "failed" else (),
    )  # fmt: skip


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
    for dropped in needed_dropped_connections(replace(seen.traffic, dropped=blocked)):
        yield f"{dropped.pair} was dropped: {dropped.missing}"
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


def with_preflights(report: Rehearsal, preflights: Sequence[PreflightResult]) -> Rehearsal:
    """The report with what preflights found. A finding ends the real runs of the job before they train."""
    found = any(result.findings for result in preflights)
    return replace(report, preflight=tuple(preflights), verdict="failed" if found else report.verdict)


def _statement_results(seen: Observations) -> Iterator[StatementResult]:
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


def rehearsal_summary(report: Rehearsal) -> str:
    """One line with the verdict and the counts."""
    counts: Mapping[str, int] = {
        verdict: sum(run.verdict == verdict for run in report.runs) for verdict in ("passed", "failed", "not rehearsed")
    }
    counted = join_titles(
        f"{count} run{'' if count == 1 else 's'} {verdict}" for verdict, count in counts.items() if count
    )
    return f"{report.stack}: {report.verdict.upper()} ({counted or 'no runs'}; {report.seconds:.0f} s)"
