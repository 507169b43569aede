# SPDX-License-Identifier: Apache-2.0
"""Reviews stacks: records both sides of each, in two processes, and evaluates them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from catalog.platforms import default_platform, platform_in, platforms
from components.plan.build import plan_of
from components.plan.show import plain
from components.platform.review import Snapshot
from schemas.across_stacks import check_together, find_neighbours
from schemas.judge import Judged, judge_file
from trainyard.review.evaluate import CheckFindings, ReviewContext, review
from trainyard.review.model import Review, StackKind
from trainyard.review.preview import read_preview
from trainyard.review.recorder import Recorded, RecordingError, RecordingProcess, empty_recording
from trainyard.review.revisions import Side

Progress = Callable[[str], None]
_FEW = 10
# Keys of a stack file beside `config`, by which Pulumi finds the key of its secrets.
_OF_ENCRYPTION = ("secretsprovider", "encryptedkey", "encryptionsalt")


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

    def in_words(self, text: str, side: Side) -> str:
        """Replaces paths of the side's temporary folder with those that people know.

        The temporary folder's name is always new, so a finding that contains it would differ on both sides."""
        shown = self.shown(self.after.stacks / "file").removesuffix("file")
        for folder in {str(side.stacks.resolve()), os.path.abspath(side.stacks)}:
            text = text.replace(f"{folder}{os.sep}", shown)
        return text


@dataclass(frozen=True, slots=True)
class _Sides:
    """One stack's file on both sides, judged. None: the side does not have the file."""

    name: str
    before: Judged | None
    after: Judged | None

    @property
    def kind(self) -> StackKind:
        return "changed" if self.before and self.after else "new" if self.after else "removed"


def review_stacks(wanted: ReviewRequest, progress: Progress) -> Iterator[Review]:
    """Yields one review after the other. A thread records the earlier sides in advance."""
    sides = _judged(wanted)
    with ExitStack() as open_until_the_end:
        # Closed last, because closing the processes ends the recordings that still run.
        pool = open_until_the_end.enter_context(ThreadPoolExecutor(1))
        after = before = open_until_the_end.enter_context(RecordingProcess(wanted.after.code))
        # For the same code, a second process is worth its imports only with many stacks.
        if wanted.before and (wanted.before.code != wanted.after.code or len(sides) > _FEW):
            before = open_until_the_end.enter_context(RecordingProcess(wanted.before.code))
        then = wanted.context.against
        earlier = [pool.submit(_record, before, one.name, one.before, then) if one.before else None for one in sides]
        try:
            for number, (one, future) in enumerate(zip(sides, earlier, strict=True), 1):
                progress(f"reviewing {one.name} ({number} of {len(sides)})")
                yield _reviewed(wanted, one, after, future)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def review_preview(wanted: ReviewRequest, file: Path) -> Review:
    """Reviews what the engine saw in a preview. Raises PreviewError."""
    (one,) = _judged(replace(wanted, before=None))
    assert one.after is not None
    plan = plain(plan_of(one.after)) if not one.after.errors else {}
    seen = read_preview(file, one.name, _platform(one.after), plan)
    known = replace(wanted.context, by_engine=seen.replaced)
    kind: StackKind = "changed" if seen.before.resources and seen.after.resources else "new"
    if seen.before.resources and not seen.after.resources:
        kind = "removed"
    return review(seen.before, seen.after, kind, _findings(wanted, one), known, wanted.rehearsal)


def _judged(wanted: ReviewRequest) -> list[_Sides]:
    """Runs `check` on both sides."""
    found = [
        (name, wanted.before.file(name) if wanted.before else None, wanted.after.file(name)) for name in wanted.names
    ]
    before = _check(wanted, wanted.before or wanted.after, [file for _, file, _ in found])
    after = _check(wanted, wanted.after, [file for _, _, file in found])
    return [
        _Sides(name.removeprefix("Pulumi.").removesuffix(".yaml"), then, now)
        for (name, _, _), then, now in zip(found, before, after, strict=True)
    ]


def _check(wanted: ReviewRequest, side: Side, files: Sequence[Path | None]) -> list[Judged | None]:
    there = [file for file in files if file is not None]
    judged = [judge_file(file, str(file), wanted.context.on) for file in there]
    together = check_together(judged, find_neighbours(tuple(there), judged))
    named = iter(_with_words(one, lambda text: wanted.in_words(text, side)) for one in together)
    return [next(named) if file is not None else None for file in files]


def _with_words(one: Judged, words: Callable[[str], str]) -> Judged:
    findings = (replace(row, message=words(row.message), remedy=words(row.remedy)) for row in one.findings)
    return replace(one, findings=tuple(findings))


def _reviewed(wanted: ReviewRequest, one: _Sides, after: RecordingProcess, earlier: Future[Recorded] | None) -> Review:
    platform = _platform(one.after or one.before)
    recorded = earlier.result() if earlier else empty_recording(one.name, platform)
    now = _record(after, one.name, one.after, "", recorded if earlier else None) if one.after else None
    then = _with_known_paths(wanted, wanted.before or wanted.after, recorded.snapshot)
    snapshot = (
        _with_known_paths(wanted, wanted.after, now.snapshot) if now else empty_recording(one.name, platform).snapshot
    )
    snapshot = replace(snapshot, remarks=(*snapshot.remarks, *_changed_keys(one)))
    return review(then, snapshot, one.kind, _findings(wanted, one), wanted.context, wanted.rehearsal)


def _changed_keys(one: _Sides) -> Iterator[str]:
    """A warning for each key of Pulumi's own that decides who can decrypt the stack's secrets, and that changes."""
    before, after = (_top_level(side) for side in (one.before, one.after))
    for key in _OF_ENCRYPTION if one.before and one.after else ():
        if before.get(key) != after.get(key):
            yield (
                f"{key} changes: with another key or passphrase, its owner can read every secret that is set from now"
                " on; check whose it is before you set or change one"
            )


def _top_level(side: Judged | None) -> Mapping[str, Any]:
    return side.source.data if side and isinstance(side.source.data, Mapping) else {}


def _with_known_paths(wanted: ReviewRequest, side: Side, snapshot: Snapshot) -> Snapshot:
    remarks = tuple(wanted.in_words(text, side) for text in snapshot.remarks)
    return replace(snapshot, remarks=remarks, refused=wanted.in_words(snapshot.refused, side))


def _record(
    process: RecordingProcess, name: str, judged: Judged | None, revision: str, before: Recorded | None = None
) -> Recorded:
    assert judged is not None
    platform = _platform(judged)
    if not judged.errors:
        try:
            return process.record(judged.folder / f"Pulumi.{name}.yaml", platform, before)
        except RecordingError as problem:
            problem.where = f"{name} at {revision}" if revision else name
            raise
    first = judged.errors[0]
    # On one line: a break in a key of the file would begin an item of its own.
    refused = f"the stack file has errors, so nothing of it is compared: {first.code} {' '.join(first.message.split())}"
    return Recorded(Snapshot(name, platform, {}, (), refused=refused))


def _platform(judged: Judged | None) -> str:
    data = judged.source.data if judged else None
    config = data.get("config") if isinstance(data, Mapping) else None
    named = platform_in(config) if isinstance(config, Mapping) else default_platform()
    return named if named in platforms() else default_platform()


def _findings(wanted: ReviewRequest, one: _Sides) -> CheckFindings:
    judged = one.after or one.before
    assert judged is not None
    file = wanted.shown(wanted.after.stacks / f"Pulumi.{one.name}.yaml")
    return CheckFindings(
        file,
        one.before.findings if one.before else (),
        one.after.findings if one.after else (),
        wanted.pack,
    )
