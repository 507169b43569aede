# SPDX-License-Identifier: Apache-2.0
"""`trainyard runs why`: the verdict on one run, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import click

from components.plan.show import aligned_rows, json_text
from components.platform.files import StoreOpener, StoreRequest, store_opener
from components.platform.status import RunStatus, parse_json
from launcher.escaping import terminal_line
from schemas.load import load_file
from schemas.name_suggestions import quoted_list
from trainyard.cli.out import print_json, say_in_colour
from trainyard.cli.run_selection import JOBS_KEY, RunSelection, config_of
from trainyard.cli.runs_text import head_of
from trainyard.cli.waiting import show_waiting
from trainyard.runs.run_looks import Look
from trainyard.why.ask_stacks import ANSWER_SECONDS, ask_living_nodes
from trainyard.why.collect import Collected, collect_evidence
from trainyard.why.judge import judge_run
from trainyard.why.model import Verdict
from trainyard.why.stack_groups import rank_words

_MOST_NAMED = 8


def explain_run(selection: RunSelection, form: str, colour: bool) -> None:
    """Prints why the selected run failed or hangs, as far as that is known."""
    run = the_selected_run(selection)
    if not isinstance(selection.look, Look):
        raise click.UsageError("name the run's stack")
    file, note, request = selection.file_of(run.stack), "", ""
    if not run.over:
        with show_waiting("asking the ranks where they are"):
            opened, look = partial(_open_store, selection, run), partial(_look_again, selection, run)
            asked = ask_living_nodes(run, opened, look, ANSWER_SECONDS)
        run, note, request = asked.run, asked.note, asked.request
    folder = file.parent if file is not None else None
    with show_waiting("reading what the ranks printed"):
        collected = collect_evidence(selection.look, run, framework_of_job(selection, run.job), folder, request)
    if note:
        collected = replace(collected, notes=(note, *collected.notes))
    verdict = judge_run(collected.evidence, collected.symptoms)
    if form == "json":
        print_json(verdict_json(run, verdict, collected.notes))
    else:
        say_in_colour("\n".join(verdict_lines(run, verdict, collected, colour)), colour)


def _open_store(selection: RunSelection, run: RunStatus) -> StoreOpener:
    file = selection.file_of(run.stack)
    where = replace(selection.where, config=config_of(file))
    return store_opener(StoreRequest("put", where, load_file(file).stack if file else None))


def _look_again(selection: RunSelection, run: RunStatus) -> RunStatus:
    """The same run as it is now; as it was, if it is gone."""
    return next((now for now in selection.look.look() if now.nodes[0].run.id == run.nodes[0].run.id), run)


def the_selected_run(selection: RunSelection) -> RunStatus:
    if selection.wanted.stack is None or selection.wanted.job is None:
        raise click.UsageError("which run? Give STACK and JOB/RUN; `trainyard runs STACK` lists them")
    runs = selection.runs()
    if len(runs) > 1:
        names = [run.title for run in runs[:_MOST_NAMED]] + ["…"] * (len(runs) > _MOST_NAMED)
        raise click.UsageError(f"which of {len(runs)} runs? Name one: {quoted_list(names)}")
    return runs[0]


def framework_of_job(selection: RunSelection, job: str) -> str:
    """The framework in the stack file, unchecked; empty if it cannot be read."""
    jobs = selection.where.config.get(JOBS_KEY)
    rows = parse_json(jobs.encode()) if isinstance(jobs, str) else jobs
    row = rows.get(job) if isinstance(rows, dict) else None
    framework = row.get("framework") if isinstance(row, dict) else None
    return framework if isinstance(framework, str) else ""


def verdict_json(run: RunStatus, verdict: Verdict, notes: Sequence[str]) -> str:
    named: dict[str, Any] = {"stack": run.stack, "job": run.job, "run": run.name, "attempt": run.attempt}
    return json_text({**named, "state": run.state, **asdict(verdict), "notes": list(notes)})


def verdict_lines(run: RunStatus, verdict: Verdict, collected: Collected, colour: bool) -> Iterator[str]:
    """The verdict for a terminal. Its words come from nodes and from others, so they are escaped."""
    yield head_of(run, colour)
    yield terminal_line(verdict.cause)
    certainty = _certainty_words(verdict)
    rows = [
        ("certainty", certainty),
        ("ranks", rank_words(verdict.ranks) if verdict.ranks else ""),
        ("line", verdict.line),
        ("rule", verdict.rule),
        ("remedy", verdict.remedy),
        ("look at", verdict.look if verdict.certainty != "unknown" or verdict.kind == "none" else ""),
    ]
    yield from map(terminal_line, aligned_rows([row for row in rows if row[1]]))
    if verdict.evidence:
        yield "evidence, the strongest first:"
        seen = [
            (one.kind, f"{rank_words(one.ranks)}: {one.words}" if one.ranks else one.words) for one in verdict.evidence
        ]
        yield from map(terminal_line, aligned_rows(seen))
    for note in collected.notes:
        yield terminal_line(f"not known: {note}")


def _certainty_words(verdict: Verdict) -> str:
    if verdict.kind == "none":
        return ""
    if verdict.certainty == "unknown":
        return f"unknown: look at {verdict.look}"
    if verdict.certainty == "likely":
        return "likely: one kind of evidence says so, and it comes from the nodes themselves"
    return "certain: something outside of the nodes shows it, or two kinds of evidence agree"
