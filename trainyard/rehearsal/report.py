# SPDX-License-Identifier: Apache-2.0
"""The report of a rehearsal as text for a terminal, as JSON, and as a section of `trainyard review`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from components.plan.show import json_text, plain, table
from trainyard.markup import escape_markdown
from trainyard.rehearsal.judgement import summary
from trainyard.rehearsal.model import ENFORCED, Rehearsal, RunResult
from trainyard.rehearsal.mutations import Proof, join_titles

_LONG_ID = re.compile(r"\b([a-z]+1\.[a-z]+)\.[a-z0-9]*\.[a-z0-9-]*\.([a-z0-9]{20,})")
# A review shows at most this many rows of a list.
_MOST_ROWS = 40


def text(report: Rehearsal) -> str:
    sections = (
        _runs(report), _rules(report), _dropped(report), _statements(report), _refused(report), _artifacts(report),
        _not_proven(report), _proof(report.proof), _confirmed(report),
    )  # fmt: skip
    return _short("\n".join([summary(report), *(line for section in sections for line in section)]))


def _short(text_: str) -> str:
    """Shortens long ids to their kind and their last characters. JSON has them in full."""
    return _LONG_ID.sub(lambda match: f"{match[1]}…{match[2][-6:]}", text_)


def _section(title: str, rows: Iterable[str], nothing: str = "") -> Iterator[str]:
    lines = list(rows)
    if lines or nothing:
        yield f"\n{title}{'' if lines else f': {nothing}'}"
        yield from lines


def _runs(report: Rehearsal) -> Iterator[str]:
    for run in report.runs:
        yield f"\n{run.job}/{run.run}: {run.verdict}{_by_what(run)}"
        yield from (f"  {reason}" for reason in run.because)
        if run.ranks:
            head = ("rank", "node", "address", "state", "joined", "finished", "first step")
            yield from table([head, *(_rank_row(run))])
            yield from _section("  carried", table([_LOAD_HEAD, *_load_rows(run)] if _is_measured(run) else []))
        yield from (f"  | {line}" for line in run.last_lines)


def _by_what(run: RunResult) -> str:
    parts = [run.framework, f"code: {run.code}" if run.code else "", run.environment]
    return f" ({', '.join(part for part in parts if part)})"


def _rank_row(run: RunResult) -> Iterator[tuple[str, ...]]:
    for rank in run.ranks:
        step = "-" if rank.first_step_seconds is None else f"{rank.first_step_seconds:.1f} s"
        joined, finished = ("yes" if reached else "NO" for reached in (rank.joined, rank.finished))
        yield str(rank.rank), rank.name, rank.address or "-", rank.state, joined, finished, step


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
            rank.name, word, _bytes(rank.load.bytes), str(rank.load.peers), _bytes(idle.bytes) if idle else "-",
            _seconds(seconds), _seconds(idle.processor_seconds if idle else None),
            f"{seconds / whole:.0%}" if seconds is not None and whole else "-",
        )  # fmt: skip


def _bytes(count: int) -> str:
    return f"{count} bytes" if count < 10_000 else f"{count / 1000:.0f} KB"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"


def _rules(report: Rehearsal) -> Iterator[str]:
    rows = []
    for rule in report.rules:
        carried = (
            f"{rule.connections} connections: {join_titles(rule.pairs)}" if rule.connections else "carried nothing"
        )
        rows.append((("used" if rule.connections else "idle"), rule.rule, carried))
    # Shown even without rules: it is the reason for the verdict `not rehearsed`.
    nothing = "none" if report.runs and report.firewall != ENFORCED else ""
    yield from _section(f"port rules, {report.firewall}", table(rows), nothing)


def _dropped(report: Rehearsal) -> Iterator[str]:
    rows = ((one.pair, f"{one.packets} packets", one.missing) for one in report.dropped)
    yield from _section("dropped", table(rows), "nothing" if report.rules else "")


def _statements(report: Rehearsal) -> Iterator[str]:
    rows = []
    for one in report.statements:
        used = f"used {one.calls}x" if one.calls else "idle"
        guessed = f" [rests on inferred {', '.join(one.inferred)}]" if one.inferred else ""
        rows.append((used, f"{one.statement}{guessed}"))
    yield from _section("statements", table(rows))


def _refused(report: Rehearsal) -> Iterator[str]:
    rows = ((one.who, one.operation, f"lacks {', '.join(one.missing)}", f"{one.times}x") for one in report.refused)
    yield from _section("refused", table(rows), "nothing" if report.statements else "")


def _artifacts(report: Rehearsal) -> Iterator[str]:
    rows = [
        (f"{run.job}/{run.run}", one.name, f"{one.bytes} bytes" + ", which a real cloud would lose" * one.local_only)
        for run in report.runs
        for one in run.artifacts
    ]
    yield from _section("what came back", table(rows))


def _not_proven(report: Rehearsal) -> Iterator[str]:
    yield from _section("not proven", (f"  {one}" for one in report.not_proven))


def _proof(proof: Proof | None) -> Iterator[str]:
    if proof is None:
        return
    yield f"\nproof: {proof_summary(proof)}"
    for one in proof.outcomes:
        fate = one.fate if one.explained else "SURVIVES UNEXPLAINED"
        yield f"  {one.of} {one.kind}: {one.title}"
        yield f"    {fate}: {one.because}"


def proof_summary(proof: Proof) -> str:
    counts = {fate: sum(one.fate == fate for one in proof.outcomes) for fate in ("fails", "caught", "survives")}
    return (
        f"{len(proof.outcomes)} mutations: {counts['fails']} make a named connection or permission fail,"
        f" {counts['caught']} are caught by policy or plan, {counts['survives']} survive,"
        f" {len(proof.unexplained)} of them unexplained"
    )


def _confirmed(report: Rehearsal) -> Iterator[str]:
    rows = (f"  {one.title}: {one.because}" for one in report.confirmed)
    yield from _section("confirmed by a run of their own", rows)


def as_json(report: Rehearsal) -> str:
    shown = plain(report)
    if report.proof is not None:
        shown["proof"]["unexplained"] = len(report.proof.unexplained)
    return json_text({**shown, "exitCode": report.exit_code})


def markdown(report: Rehearsal) -> str:
    """A section of a review: the verdict first, with long lists collapsed."""
    lines = [
        f"### Rehearsal of {escape_markdown(report.stack)}: {report.verdict}",
        "",
        f"{escape_markdown(summary(report))}.",
        "",
    ]
    lines += _md_runs(report)
    reasons = [(f"{run.job}/{run.run}", reason) for run in report.runs for reason in run.because]
    failures = [f"- **{escape_markdown(run)}**: {escape_markdown(reason)}" for run, reason in reasons]
    lines += [*failures, ""] if failures else []
    loads = [(f"{run.job}/{run.run}", *row) for run in report.runs if _is_measured(run) for row in _load_rows(run)]
    lines += _md_table("What each node carried", ("run", *_LOAD_HEAD), loads)
    rules = [
        (one.rule, "yes" if one.connections else "no", join_titles(one.pairs) or one.description)
        for one in report.rules
    ]
    lines += _md_table(f"Port rules ({report.firewall})", ("rule", "used", "by whom, or what for"), rules)
    if report.runs and not rules and report.firewall != ENFORCED:
        lines += [f"Port rules: none, {escape_markdown(report.firewall)}.", ""]
    dropped = [(one.pair, str(one.packets), one.missing) for one in report.dropped]
    lines += _md_table("Dropped", ("who wanted what", "packets", "why"), dropped)
    statements = [(one.statement, str(one.calls), ", ".join(one.inferred) or "-", one.why) for one in report.statements]
    lines += _md_table("Statements", ("statement", "calls", "inferred permissions it was used for", "why"), statements)
    refused = [(one.who, one.operation, ", ".join(one.missing)) for one in report.refused]
    lines += _md_table("Refused", ("who", "operation", "lacks"), refused)
    lines += _md_table("Not proven", ("what",), [(one,) for one in report.not_proven])
    if report.proof is not None:
        survivors = [(one.kind, one.title, one.because) for one in report.proof.survivors]
        lines += [f"**Proof.** {proof_summary(report.proof)}.", ""]
        lines += _md_table("Survivors", ("mutation", "of", "why"), survivors)
    return "\n".join(lines).rstrip() + "\n"


def _md_runs(report: Rehearsal) -> list[str]:
    rows = []
    for run in report.runs:
        step = "-" if run.first_step_seconds is None else f"{run.first_step_seconds:.1f} s"
        finished = f"{sum(rank.finished for rank in run.ranks)} of {len(run.ranks)}"
        left = f"{len(run.artifacts)} objects"
        rows.append((f"{run.job}/{run.run}", run.framework, run.verdict, finished, step, left))
    head = ("run", "framework", "verdict", "ranks finished", "first step", "came back")
    return _md_rows(head, rows)


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


RENDERERS: Mapping[str, Callable[[Rehearsal], str]] = {"text": text, "json": as_json, "markdown": markdown}
