# SPDX-License-Identifier: Apache-2.0
"""The report of a rehearsal as text for a terminal, as JSON, and as a section of `trainyard review`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from components.plan.show import aligned_rows, json_text, to_plain_values
from trainyard.markup import escape_markdown
from trainyard.rehearsal.judgement import rehearsal_summary
from trainyard.rehearsal.model import ENFORCED, FaultOutcome, Rehearsal, RunResult
from trainyard.rehearsal.mutations import Proof, join_titles

_LONG_ID = re.compile(r"\b([a-z]+1\.[a-z]+)\.[a-z0-9]*\.[a-z0-9-]*\.([a-z0-9]{20,})")
# A review shows at most this many rows of a list.
_MOST_ROWS = 40


def rehearsal_text(report: Rehearsal) -> str:
    lines = [rehearsal_summary(report), *_run_lines(report)]
    rules = [
        ("used", rule.rule, f"{rule.connections} connections: {join_titles(rule.pairs)}")
        if rule.connections
        else ("idle", rule.rule, "carried nothing")
        for rule in report.rules
    ]
    # Shown even without rules: it is the reason for the verdict `not rehearsed`.
    nothing = "none" if report.runs and report.firewall != ENFORCED else ""
    lines += _titled_rows(f"port rules, {report.firewall}", aligned_rows(rules), nothing)
    dropped = [(drop.pair, f"{drop.packets} packets", drop.missing) for drop in report.dropped]
    lines += _titled_rows("dropped", aligned_rows(dropped), "nothing" if report.rules else "")
    lines += _titled_rows("planned connections, tested before training", aligned_rows(_preflight_rows(report)))
    lines += [f"  {finding}" for result in report.preflight for finding in result.findings]
    statements = []
    for statement in report.statements:
        used = f"used {statement.calls}x" if statement.calls else "idle"
        guessed = f" [rests on inferred {', '.join(statement.inferred)}]" if statement.inferred else ""
        statements.append((used, f"{statement.statement}{guessed}"))
    lines += _titled_rows("statements", aligned_rows(statements))
    refused = [
        (call.who, call.operation, f"lacks {', '.join(call.missing)}", f"{call.times}x") for call in report.refused
    ]
    lines += _titled_rows("refused", aligned_rows(refused), "nothing" if report.statements else "")
    artifacts = [
        (f"{run.job}/{run.run}", file.name, f"{file.bytes} bytes" + ", which a real cloud would lose" * file.local_only)
        for run in report.runs
        for file in run.artifacts
    ]
    lines += _titled_rows("what came back", aligned_rows(artifacts))
    lines += _titled_rows("not proven", (f"  {remark}" for remark in report.not_proven))
    if report.proof is not None:
        lines.append(f"\nproof: {proof_summary(report.proof)}")
        for outcome in report.proof.outcomes:
            fate = outcome.fate if outcome.explained else "SURVIVES UNEXPLAINED"
            lines += [f"  {outcome.of} {outcome.kind}: {outcome.title}", f"    {fate}: {outcome.because}"]
    confirmed = (f"  {outcome.title}: {outcome.because}" for outcome in report.confirmed)
    lines += _titled_rows("confirmed by a run of their own", confirmed)
    disturbed = (line for outcome in report.faults for line in _fault_lines(outcome))
    lines += _titled_rows("disturbed", disturbed)
    lines += _titled_rows("faults that were left out", (f"  {fault}" for fault in report.faults_left_out))
    # Long ids are shortened to their kind and their last characters. JSON has them in full.
    return _LONG_ID.sub(lambda match: f"{match[1]}…{match[2][-6:]}", "\n".join(lines))


def _titled_rows(title: str, rows: Iterable[str], nothing: str = "") -> Iterator[str]:
    lines = list(rows)
    if lines or nothing:
        yield f"\n{title}{'' if lines else f': {nothing}'}"
        yield from lines


def _run_lines(report: Rehearsal) -> Iterator[str]:
    for run in report.runs:
        how = [run.framework, f"code: {run.code}" if run.code else "", run.environment]
        yield f"\n{run.job}/{run.run}: {run.verdict} ({', '.join(filter(None, how))})"
        yield from (f"  {reason}" for reason in run.because)
        if run.ranks:
            ranks = [("rank", "node", "address", "state", "joined", "finished", "first step")]
            for rank in run.ranks:
                step = "-" if rank.first_step_seconds is None else f"{rank.first_step_seconds:.1f} s"
                joined, finished = ("yes" if reached else "NO" for reached in (rank.joined, rank.finished))
                ranks.append((str(rank.rank), rank.name, rank.address or "-", rank.state, joined, finished, step))
            yield from aligned_rows(ranks)
            yield from _titled_rows(
                "  carried", aligned_rows([_LOAD_HEAD, *_load_rows(run)] if _is_measured(run) else [])
            )
        yield from (f"  | {line}" for line in run.last_lines)


def _preflight_rows(report: Rehearsal) -> Iterator[tuple[str, str, str]]:
    """Planned connections, those of the same ports together."""
    for result in report.preflight:
        if result.untested:
            yield "not tested", result.run, result.untested
        groups: dict[tuple[str, str], list[str]] = {}
        for one in result.connections:
            if one.open is not None:
                ports = f"{result.run} tcp {one.ports} ({one.label})"
                groups.setdefault(("open" if one.open else "CLOSED", ports), []).append(f"{one.source} -> {one.target}")
        for (state, ports), pairs in groups.items():
            yield state, ports, join_titles(pairs)


_NOT_STRUCK = "; nothing noticed it"


def _fault_lines(outcome: FaultOutcome) -> Iterator[str]:
    yield f"  {outcome.run}: {outcome.fault}{'' if outcome.struck else _NOT_STRUCK}"
    yield f"    {outcome.state}{f': {outcome.said}' if outcome.said else ''}"
    after = [_fault_end(outcome), f"{outcome.seconds:.0f} s in all", _fault_loss(outcome)]
    yield f"    {', '.join(filter(None, after))}"


def _fault_loss(outcome: FaultOutcome) -> str:
    undisturbed = "the same" if outcome.loss == outcome.undisturbed_loss else outcome.undisturbed_loss
    return f"{outcome.loss} at the end, undisturbed {undisturbed}" if outcome.loss else ""


def _fault_end(outcome: FaultOutcome) -> str:
    """How the run ended after the fault."""
    if not outcome.again:
        return "went on"
    words = {True: f", resumed at step {outcome.from_step}", False: ", from the first step on", None: ""}
    return f"started again: {outcome.again}{words[outcome.resumed]}"


_LOAD_HEAD = ("node", "carried", "with others", "nodes", "idle", "processor", "idle", "share")


def _is_measured(run: RunResult) -> bool:
    return any(rank.load is not None for rank in run.ranks)


def _load_rows(run: RunResult) -> Iterator[tuple[str, ...]]:
    """The load of each node, its idle load, and its share of the run's processor time."""
    whole = sum(rank.load.processor_seconds or 0.0 for rank in run.ranks if rank.load)
    for rank in run.ranks:
        word = {True: "yes", False: "NOTHING", None: "-"}[rank.carried]
        if rank.load is None:
            yield rank.name, word, "-", "-", "-", "-", "-", "-"
            continue
        idle, seconds = rank.idle, rank.load.processor_seconds
        yield (
            rank.name, word, _format_bytes(rank.load.bytes), str(rank.load.peers),
            _format_bytes(idle.bytes) if idle else "-", _format_seconds(seconds),
            _format_seconds(idle.processor_seconds if idle else None),
            f"{seconds / whole:.0%}" if seconds is not None and whole else "-",
        )  # fmt: skip


def _format_bytes(count: int) -> str:
    return f"{count} bytes" if count < 10_000 else f"{count / 1000:.0f} KB"


def _format_seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"


def proof_summary(proof: Proof) -> str:
    counts = Counter(outcome.fate for outcome in proof.outcomes)
    return (
        f"{len(proof.outcomes)} mutations: {counts['fails']} make a named connection or permission fail,"
        f" {counts['caught']} are caught by policy or plan, {counts['survives']} survive,"
        f" {len(proof.unexplained)} of them unexplained"
    )


def rehearsal_json(report: Rehearsal) -> str:
    shown = to_plain_values(report)
    if report.proof is not None:
        shown["proof"]["unexplained"] = len(report.proof.unexplained)
    return json_text({**shown, "exitCode": report.exit_code})


def rehearsal_markdown(report: Rehearsal) -> str:
    """A section of a review: the verdict first, with long lists collapsed."""
    lines = [
        f"### Rehearsal of {escape_markdown(report.stack)}: {report.verdict}",
        "",
        f"{escape_markdown(rehearsal_summary(report))}.",
        "",
    ]
    rows = []
    for run in report.runs:
        step = "-" if run.first_step_seconds is None else f"{run.first_step_seconds:.1f} s"
        finished = f"{sum(rank.finished for rank in run.ranks)} of {len(run.ranks)}"
        left = f"{len(run.artifacts)} objects"
        rows.append((f"{run.job}/{run.run}", run.framework, run.verdict, finished, step, left))
    head = ("run", "framework", "verdict", "ranks finished", "first step", "came back")
    lines += _md_rows(head, rows)
    reasons = [(f"{run.job}/{run.run}", reason) for run in report.runs for reason in run.because]
    failures = [f"- **{escape_markdown(run)}**: {escape_markdown(reason)}" for run, reason in reasons]
    lines += [*failures, ""] if failures else []
    loads = [(f"{run.job}/{run.run}", *row) for run in report.runs if _is_measured(run) for row in _load_rows(run)]
    lines += _md_table("What each node carried", ("run", *_LOAD_HEAD), loads)
    rules = [
        (rule.rule, "yes" if rule.connections else "no", join_titles(rule.pairs) or rule.description)
        for rule in report.rules
    ]
    lines += _md_table(f"Port rules ({report.firewall})", ("rule", "used", "by whom, or what for"), rules)
    if report.runs and not rules and report.firewall != ENFORCED:
        lines += [f"Port rules: none, {escape_markdown(report.firewall)}.", ""]
    dropped = [(drop.pair, str(drop.packets), drop.missing) for drop in report.dropped]
    lines += _md_table("Dropped", ("who wanted what", "packets", "why"), dropped)
    lines += _md_table("Planned connections", ("tested", "ports", "between"), [*_preflight_rows(report)])
    found = [finding for result in report.preflight for finding in result.findings]
    lines += [*(f"- {escape_markdown(finding)}" for finding in found), ""] if found else []
    statements = [
        (statement.statement, str(statement.calls), ", ".join(statement.inferred) or "-", statement.why)
        for statement in report.statements
    ]
    lines += _md_table("Statements", ("statement", "calls", "inferred permissions it was used for", "why"), statements)
    refused = [(call.who, call.operation, ", ".join(call.missing)) for call in report.refused]
    lines += _md_table("Refused", ("who", "operation", "lacks"), refused)
    disturbed = [
        (
            one.run,
            one.fault + _NOT_STRUCK * (not one.struck),
            one.state,
            one.said or "-",
            _fault_end(one),
            f"{one.seconds:.0f} s",
            _fault_loss(one) or "-",
        )
        for one in report.faults
    ]
    titles = ("run", "fault", "ended", "what is said", "then", "in all", "at the end")
    lines += _md_table("Disturbed", titles, disturbed)
    lines += _md_table("Faults that were left out", ("what",), [(fault,) for fault in report.faults_left_out])
    lines += _md_table("Not proven", ("what",), [(remark,) for remark in report.not_proven])
    if report.proof is not None:
        survivors = [(outcome.kind, outcome.title, outcome.because) for outcome in report.proof.survivors]
        lines += [f"**Proof.** {proof_summary(report.proof)}.", ""]
        lines += _md_table("Survivors", ("mutation", "of", "why"), survivors)
    return "\n".join(lines).rstrip() + "\n"


def _md_table(title: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    cut = [f"and {len(rows) - _MOST_ROWS} more", ""] if len(rows) > _MOST_ROWS else []
    shown = _md_rows(head, rows[:_MOST_ROWS])
    return [f"<details><summary>{title}: {len(rows)}</summary>", "", *shown, *cut, "</details>", ""]


def _md_rows(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    rule = "|".join(["", *(" --- " for _ in head), ""])
    return [_md_row(head), rule, *map(_md_row, rows), ""]


def _md_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(escape_markdown, cells)) + " |"


RENDERERS: Mapping[str, Callable[[Rehearsal], str]] = {
    "text": rehearsal_text,
    "json": rehearsal_json,
    "markdown": rehearsal_markdown,
}
