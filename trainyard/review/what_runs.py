# SPDX-License-Identifier: Apache-2.0
"""What the jobs of a stack run, and as whom, on both sides: also of jobs whose runs are started later.

The stack files are compared, with the files that they name; catalog/what_runs.toml says how a part is called. What the
program makes of an unchanged stack file is compared by the inputs of its runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from catalog.tables import table
from components.plan.model import RUN_TYPE
from components.platform.inputs import MUTABLE
from components.platform.review import Snapshot
from schemas.judge import Judged
from trainyard.review.changes import find_differences, match_resources, without_indexes
from trainyard.review.code_changes import compare_code_folders
from trainyard.review.model import Review, RunChange, RunChangeKind
from trainyard.review.run_items import concerns_run
from trainyard.review.run_parts import PartPath, Parts, RunPart, StackFileParts, input_text

_ROWS = "what_runs"
_CAPTURED = re.compile(r"\{(\d)\}")
# A run's inputs have these above what it runs.
_ABOVE = re.compile(r"^(nodes|protocol)(\[\d+\])?\.(environment\.TRAINYARD_LAUNCH\.)?")


@dataclass(frozen=True, slots=True)
class _Place:
    """The table of rows for parts, and what they belong to."""

    rows: str
    job: str = ""
    run: str = ""


def compare_what_runs(before: Judged | None, after: Judged | None) -> tuple[RunChange, ...]:
    """What the stack files of both sides let run. Empty if one cannot be read, or if the stack is removed."""
    if after is None or after.stack is None or (before is not None and before.stack is None):
        return ()
    now, then = StackFileParts(after), StackFileParts(before) if before else None
    earlier_names = {job.was.first(name): name for name, job in then.stack.jobs.items()} if then else {}
    names = {job.was.first(name): name for name, job in now.stack.jobs.items()}
    changes = [*_compare_parts(then.of_stack(), now.of_stack(), _Place("stack"))] if then else []
    for key, name in names.items():
        earlier = earlier_names.get(key)
        if earlier is None:
            changes.append(RunChange(name, "", "added", "job"))
        parts = then.of_job(earlier) if then and earlier else {}
        changes += _compare_parts(parts, now.of_job(name), _Place("job", name))
        if then and earlier:
            changes += _compare_code(then, earlier, now, name)
        changes += _compare_runs(then, earlier, now, name)
    changes += (RunChange(name, "", "removed", "job") for key, name in earlier_names.items() if key not in names)
    return tuple(changes)


def with_what_runs(review: Review, stack_files: tuple[RunChange, ...], before: Snapshot, after: Snapshot) -> Review:
    """`stack_files`: what the stack files change."""
    if not review.judged:
        return review
    changes = (*stack_files, *_compare_run_inputs(before, after, stack_files))
    kind = "changed" if review.kind == "same" and changes else review.kind
    return replace(review, kind=kind, what_runs=changes)


def _compare_run_inputs(before: Snapshot, after: Snapshot, stack_files: Iterable[RunChange]) -> tuple[RunChange, ...]:
    """What changes in runs although their part of the stack file is as before: the program makes something else of it,
    or it was not compared."""
    changes = []
    for pair in match_resources(before, after)[0]:
        job, _, run = pair.after.name.partition("/")
        if pair.after.type != RUN_TYPE or any(concerns_run(change, pair.after.name) for change in stack_files):
            continue
        for path, old, new in find_differences(pair.before.inputs, pair.after.inputs):
            if path.partition(".")[0].partition("[")[0] not in MUTABLE:
                what = without_indexes(_ABOVE.sub("", path))
                changes.append(RunChange(job, run, "changed", what, input_text(old), input_text(new)))
    # Nodes of a role differ alike.
    return tuple(dict.fromkeys(changes))


def _compare_code(then: StackFileParts, earlier: str, now: StackFileParts, job: str) -> Iterator[RunChange]:
    """The files of the code folder. A folder that the other side does not have lies outside of its revision."""
    before, after = (
        (side.folder / code.folder).resolve() if (code := side.stack.jobs[name].code) and code.folder else None
        for side, name in ((then, earlier), (now, job))
    )
    if after is None or not after.is_dir() or (before is not None and not before.is_dir()):
        return
    for change in compare_code_folders(before, after):
        kind: RunChangeKind = "added" if change.is_new else "removed" if change.is_gone else "changed"
        what = f"file {change.name} of the code" if change.name else "files"
        texts = ("", change.words) if kind != "removed" else (change.words, "")
        yield RunChange(job, "", kind, what, *texts)


def _compare_runs(
    then: StackFileParts | None, earlier: str | None, now: StackFileParts, job: str
) -> Iterator[RunChange]:
    earlier_runs = then.stack.jobs[earlier].runs if then and earlier else {}
    earlier_names = {run.was.first(name): name for name, run in earlier_runs.items()}
    names = {run.was.first(name): name for name, run in now.stack.jobs[job].runs.items()}
    for key, name in names.items():
        if key not in earlier_names:
            yield RunChange(job, name, "added", "run")
        parts = then.of_run(earlier, earlier_names[key]) if then and earlier and key in earlier_names else {}
        yield from _compare_parts(parts, now.of_run(job, name), _Place("run", job, name))
    yield from (RunChange(job, name, "removed", "run") for key, name in earlier_names.items() if key not in names)


def _compare_parts(before: Parts, after: Parts, place: _Place) -> Iterator[RunChange]:
    for path in dict.fromkeys((*after, *before)):
        then, now = before.get(path), after.get(path)
        if then and now and then.compared == now.compared:
            continue
        # A part that only one side can have, and that says there what holds without it.
        if not (then and now) and all(part is None or part.is_default for part in (then, now)):
            continue
        row = _row_of_path(place.rows, path)
        if row is not None and "silent" not in row:
            yield _change_of_part(row, path, then, now, place)


def _change_of_part(
    row: Mapping[str, Any], path: PartPath, then: RunPart | None, now: RunPart | None, place: _Place
) -> RunChange:
    shown = now.shown if now else ""
    if "unless" in row and now and row["unless"] not in now.compared:
        shown = f"{shown} ({row['note']})"
    return RunChange(
        job=place.job,
        run=place.run,
        kind="changed" if then and now else "added" if now else "removed",
        what=row["words"],
        before=then.shown if then else "",
        after=shown,
        lets_in=bool(row.get("lets_in")) and now is not None and now.compared != "false",
        minor=bool(row.get("minor")),
    )


def _row_of_path(rows: str, path: PartPath) -> Mapping[str, Any] | None:
    """The first row that fits, with the path's keys in its words. A part of the stack without a row is of another
    section; one of a job or run is called by its path."""
    for row in table(_ROWS)[rows]:
        captured = _match_path(row["path"].split("."), path)
        if captured is not None:
            words = "".join(
                piece if index % 2 == 0 else captured[int(piece)]
                for index, piece in enumerate(_CAPTURED.split(row.get("words", "")))
            )
            return {**row, "words": words}
    return None if rows == "stack" else {"words": ".".join(path)}


def _match_path(pattern: list[str], path: PartPath) -> list[str] | None:
    """What the wildcards of the pattern stand for. None if it does not fit."""
    captured: list[str] = []
    for index, key in enumerate(pattern):
        if key == "**":
            return [*captured, ".".join(path[index:])]
        if index >= len(path) or key not in ("*", path[index]):
            return None
        if key == "*":
            captured.append(path[index])
    return captured if len(pattern) == len(path) else None
