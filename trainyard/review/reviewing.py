# SPDX-License-Identifier: Apache-2.0
"""Reviews stacks: records both sides of each, in two processes, and evaluates them."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from catalog.platforms import default_platform, platform_in, platforms
from components.plan.build import plan_of
from components.plan.show import to_plain_values
from components.platform.review import Snapshot
from schemas.across_stacks import check_together, find_neighbours, takes_network_beside
from schemas.judge import Judged, judge_file
from trainyard.review.evaluate import CheckFindings, ReviewContext, review_snapshots
from trainyard.review.model import Review, StackKind
from trainyard.review.preview import read_preview
from trainyard.review.program_settings import compare_stack_settings
from trainyard.review.recorder import RecordingError, RecordingProcess
from trainyard.review.recorders import Recorders
from trainyard.review.recording import Recorded, empty_recording
from trainyard.review.revisions import Side
from trainyard.review.what_runs import compare_what_runs, with_what_runs

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """What to review. `names`: of stack files. `before` None: nothing is compared, everything is new."""

    names: Sequence[str]
    after: Side
    before: Side | None
    context: ReviewContext
    rehearsal: Mapping[str, Any] | None = None
    pack: Mapping[str, Any] = field(default_factory=dict)
    shown: Callable[[Path], str] = str
    # Filled while stacks are reviewed: why their programs ran without a sandbox.
    not_isolated: list[str] = field(default_factory=list)

    def in_words(self, text: str, side: Side) -> str:
        """Replaces paths of the side's temporary folder with those that people know.

        The temporary folder's name is always new, so a finding that contains it would differ on both sides."""
        shown = self.shown(self.after.stacks / "file").removesuffix("file")
        for folder in {str(side.stacks.resolve()), os.path.abspath(side.stacks)}:
            text = text.replace(f"{folder}{os.sep}", shown)
        return text


@dataclass(frozen=True, slots=True)
class _StackSides:
    """One stack's file on both sides, judged. None: the side does not have the file."""

    name: str
    before: Judged | None
    after: Judged | None

    @property
    def kind(self) -> StackKind:
        return "changed" if self.before and self.after else "new" if self.after else "removed"


def review_stacks(request: ReviewRequest, recorders: Recorders, progress: Progress) -> Iterator[Review]:
    """Yields one review after the other. Threads record both sides in advance. Whoever closes the recorders ends what
    they still record.
    """
    stacks = _check_both_sides(request)
    before, after = recorders.before, recorders.after
    request.not_isolated[:] = filter(None, (after.not_isolated,))
    first_pool, then_pool = ThreadPoolExecutor(1), ThreadPoolExecutor(2)
    then = request.context.against
    earlier = [
        first_pool.submit(_record_side, before, stack.name, stack.before, then) if stack.before else None
        for stack in stacks
    ]
    # Where nothing is compared, both processes record new stacks.
    for_new = (after,) if request.before else (after, before)
    later = [
        then_pool.submit(_record_after, for_new[number % len(for_new)], stack, future) if stack.after else None
        for number, (stack, future) in enumerate(zip(stacks, earlier, strict=True))
    ]
    try:
        for number, (stack, *recorded) in enumerate(zip(stacks, earlier, later, strict=True), 1):
            progress(f"reviewing {stack.name} ({number} of {len(stacks)})")
            try:
                review = _review_stack(request, stack, *recorded)
            except Exception as problem:  # an error in one stack must not hide the others
                review = _failed_review(request, stack, problem)
            yield review
    finally:
        for pool in (first_pool, then_pool):
            pool.shutdown(wait=False, cancel_futures=True)


def review_preview(request: ReviewRequest, file: Path) -> Review:
    """Reviews what the engine saw in a preview. Raises PreviewError."""
    (stack,) = _check_both_sides(replace(request, before=None))
    assert stack.after is not None
    plan = to_plain_values(plan_of(stack.after)) if not stack.after.errors else {}
    preview = read_preview(file, stack.name, _platform_of_file(stack.after), plan)
    context = replace(request.context, by_engine=preview.replaced)
    kind: StackKind = "changed" if preview.before.resources and preview.after.resources else "new"
    if preview.before.resources and not preview.after.resources:
        kind = "removed"
    review = review_snapshots(
        preview.before, preview.after, kind, _findings_of_stack(request, stack), context, request.rehearsal
    )
    return with_what_runs(review, (), preview.before, preview.after)


def _check_both_sides(request: ReviewRequest) -> list[_StackSides]:
    """Runs `check` on both sides."""
    then = [request.before.file(name) if request.before else None for name in request.names]
    now = [request.after.file(name) for name in request.names]
    before, after = (
        _check_side(request, request.before or request.after, then),
        _check_side(request, request.after, now),
    )
    return [
        _StackSides(name.removeprefix("Pulumi.").removesuffix(".yaml"), *sides)
        for name, *sides in zip(request.names, before, after, strict=True)
    ]


def _check_side(request: ReviewRequest, side: Side, files: Sequence[Path | None]) -> list[Judged | None]:
    there = [file for file in files if file is not None]
    judged = [judge_file(file, str(file), request.context.on) for file in there]
    together = []
    for stack in check_together(judged, find_neighbours(tuple(there), judged)):
        findings = (
            replace(
                finding, message=request.in_words(finding.message, side), remedy=request.in_words(finding.remedy, side)
            )
            for finding in stack.findings
        )
        together.append(replace(stack, findings=tuple(findings)))
    in_order = iter(together)
    return [next(in_order) if file is not None else None for file in files]


def _record_after(process: RecordingProcess, stack: _StackSides, earlier: Future[Recorded] | None) -> Recorded:
    """The side after the change. Its program gets the other side as its state."""
    return _record_side(process, stack.name, stack.after, "", earlier.result() if earlier else None)


def _review_stack(
    request: ReviewRequest, stack: _StackSides, earlier: Future[Recorded] | None, later: Future[Recorded] | None
) -> Review:
    missing = empty_recording(stack.name, _platform_of_file(stack.after or stack.before)).snapshot
    then = earlier.result().snapshot if earlier else missing
    then = _with_known_paths(request, request.before or request.after, then)
    now = _with_known_paths(request, request.after, later.result().snapshot if later else missing)
    made = review_snapshots(
        then, now, stack.kind, _findings_of_stack(request, stack), request.context, request.rehearsal
    )
    made = with_what_runs(made, compare_what_runs(stack.before, stack.after), then, now)
    program = compare_stack_settings(_data_of_file(stack.before), _data_of_file(stack.after))
    return replace(made, program=program, kind="changed" if program and made.kind == "same" else made.kind)


def _failed_review(request: ReviewRequest, stack: _StackSides, problem: Exception) -> Review:
    """A review that says that there is none, and why. No gate passes it."""
    step, text = "an error of `trainyard review`", "".join(traceback.format_exception(problem))
    if isinstance(problem, RecordingError):
        step, text = f"its program failed while it was recorded{problem.where}", str(problem)
    last_line = text.rstrip().rpartition("\n")[2]
    where = text if os.environ.get("TRAINYARD_TRACEBACK") else "TRAINYARD_TRACEBACK=1 shows where"
    return Review(
        stack=stack.name,
        file=_findings_of_stack(request, stack).file,
        platform=_platform_of_file(stack.after or stack.before),
        kind=stack.kind,
        commit=request.context.commit,
        against=request.context.against,
        on=request.context.on.isoformat(),
        judged=False,
        failed=f"{step}: {last_line}\n{where}",
    )


def _data_of_file(judged: Judged | None) -> Mapping[str, Any] | None:
    """The values of a stack's file. None: the side does not have it."""
    data = judged.source.data if judged else None
    return data if isinstance(data, Mapping) or judged is None else {}


def _with_known_paths(request: ReviewRequest, side: Side, snapshot: Snapshot) -> Snapshot:
    remarks = tuple(request.in_words(text, side) for text in snapshot.remarks)
    return replace(snapshot, remarks=remarks, refused=request.in_words(snapshot.refused, side))


def _record_side(
    process: RecordingProcess, name: str, judged: Judged | None, revision: str, before: Recorded | None = None
) -> Recorded:
    assert judged is not None
    platform = _platform_of_file(judged)
    if not judged.errors:
        try:
            return process.record(judged.folder / f"Pulumi.{name}.yaml", platform, before)
        except RecordingError as problem:
            problem.where = f" at {revision}" if revision else ""
            raise
    first = judged.errors[0]
    # On one line: a break in a key of the file would begin an item of its own.
    refused = f"the stack file has errors, so nothing of it is compared: {first.code} {' '.join(first.message.split())}"
    return Recorded(Snapshot(name, platform, {}, (), refused=refused))


def _platform_of_file(judged: Judged | None) -> str:
    data = judged.source.data if judged else None
    config = data.get("config") if isinstance(data, Mapping) else None
    named = platform_in(config) if isinstance(config, Mapping) else default_platform()
    return named if named in platforms() else default_platform()


def _findings_of_stack(request: ReviewRequest, stack: _StackSides) -> CheckFindings:
    file = request.shown(request.after.stacks / f"Pulumi.{stack.name}.yaml")
    before, after = (side.findings if side else () for side in (stack.before, stack.after))
    beside = bool(stack.after and stack.after.stack and takes_network_beside(stack.after.stack, stack.after.folder))
    return CheckFindings(file, before, after, request.pack, beside)
