# SPDX-License-Identifier: Apache-2.0
"""What runs, in words: the section `What will run`, its part of the verdict, and the reason why a run is replaced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from components.plan.model import RUN_TYPE
from schemas.name_suggestions import count_noun
from trainyard.review.model import Change, Review, RunChange

# Parts of a job that its line names, and characters of a value that a line shows.
_NAMED, _SHOWN = 4, 240
# Details of a job. The JSON has all of them.
_DETAILS = 60
_EVERY_JOB = "all jobs"
# Inputs of a run that hold nothing but what it runs.
_WHAT_IT_RUNS = ("nodes.", "nodes[", "protocol.", "image", "code")


def what_runs_verdict(review: Review) -> str:
    jobs = {change.job for change in review.what_runs}
    if review.kind == "new":
        return count_noun(len(jobs), "new job")
    return f"what runs changes in {_EVERY_JOB if '' in jobs else count_noun(len(jobs), 'job')}"


def what_runs_items(review: Review) -> Iterator[tuple[str, tuple[str, ...], bool]]:
    """For each job what a line says, its details, and whether it must be seen first. Jobs that change alike share a
    line."""
    by_job: dict[str, list[RunChange]] = {}
    for change in review.what_runs:
        by_job.setdefault(change.job, []).append(change)
    alike: dict[tuple[RunChange, ...], list[str]] = {}
    for job, changes in by_job.items():
        alike.setdefault(tuple(replace(change, job="") for change in changes), []).append(job)
    for same, jobs in alike.items():
        title = f"{'job' if len(jobs) == 1 else 'jobs'} {', '.join(jobs)}" if jobs != [""] else _EVERY_JOB
        is_urgent = review.kind != "new" and not all(change.minor for change in same)
        whole = next((change for change in same if change.what == "job" and not change.run), None)
        parts = [change for change in same if change is not whole]
        if whole is not None:
            details = tuple(f"{_titled(part)}: {_short(part.after)}" if part.after else _titled(part) for part in parts)
            yield f"{title}: {'new' if whole.kind == 'added' else 'removed'}", _first_details(details), is_urgent
            continue
        details = tuple(map(run_change_sentence, parts))
        if len(details) == 1:
            yield f"{title}: {details[0]}", (), is_urgent
            continue
        named = list(dict.fromkeys(map(_titled, parts)))
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        counted = f"{len(parts)} things of what runs change: {'; '.join(named[:_NAMED])}{more}"
        yield f"{title}: {counted}", _first_details(details), is_urgent


def run_change_sentence(change: RunChange) -> str:
    """`run tuned: arguments: --lr 0.1 -> --lr 0.2`, with the job if it is given."""
    job = f"job {change.job}: " if change.job else ""
    if change.kind == "removed":
        return f"{job}{_titled(change)}: gone" + (f": {_short(change.before)}" if change.before else "")
    if change.kind == "added":
        return f"{job}{_titled(change)}: new" + (f": {_short(change.after)}" if change.after else "")
    if not change.before:
        return f"{job}{_titled(change)}: {_short(change.after)}"
    if change.before == change.after:
        return f"{job}{_titled(change)}: {change.after}, set again"
    return f"{job}{_titled(change)}: {' -> '.join(_from_difference(change.before, change.after))}"


def is_explained_by_what_runs(review: Review, alike: Iterable[Change]) -> bool:
    """Whether these runs are replaced for nothing but what the section `What will run` says of them."""
    return all(
        change.type == RUN_TYPE
        and change.kind == "replaced"
        and change.because
        and all(path.startswith(_WHAT_IT_RUNS) for path in change.because)
        and any(concerns_run(part, change.name) for part in review.what_runs)
        for change in alike
    )


def concerns_run(change: RunChange, run: str) -> bool:
    """`run`: its resource's name, `job/run`."""
    job, _, name = run.partition("/")
    return change.job in ("", job) and change.run in ("", name)


def _titled(change: RunChange) -> str:
    if change.run and change.what == "run":
        return f"run {change.run}"
    return f"run {change.run}: {change.what}" if change.run else change.what


def _first_details(details: tuple[str, ...]) -> tuple[str, ...]:
    more = len(details) - _DETAILS
    return (*details[:_DETAILS], f"and {more} more, which the JSON has") if more > 0 else details


def _short(text: str) -> str:
    """The text on one line, in which breaks are seen. The end of a long text is counted."""
    shown = text.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t") or '""'
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}… ({len(shown) - _SHOWN} more characters)"


def _from_difference(before: str, after: str) -> tuple[str, str]:
    """Both texts, so that where they differ is seen, even if they are long and begin alike."""
    if max(len(before), len(after)) <= _SHOWN:
        return _short(before), _short(after)
    pairs = enumerate(zip(before, after, strict=False))
    first = next((index for index, (old, new) in pairs if old != new), min(len(before), len(after)))
    skipped = max(0, first - _SHOWN // 4)
    lead = "…" if skipped else ""
    return f"{lead}{_short(before[skipped:])}", f"{lead}{_short(after[skipped:])}"
