# SPDX-License-Identifier: Apache-2.0
"""Downloads objects into a folder, in parallel parts. Each object is verified before its file gets its name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from components.platform import streams
from components.platform.files import FileProblemError, ObjectChangedError, Store, StoredObject
from components.platform.streams import checksum_of_parts, local_path
from trainyard.files.targets import Draft, TargetFolder, open_draft
from trainyard.files.workers import TransferReport, Workers

OVERWRITE = "--overwrite replaces it with the bucket's"
# For objects that other clients uploaded in parts of unknown size.
UNVERIFIED = "fetched, but not verified: the bucket does not say in which parts it was uploaded"


@dataclass(frozen=True, slots=True)
class WantedObject:
    """An object, and its path below the target, with slashes. Both come from the bucket and are not trusted."""

    item: StoredObject
    path: str


@dataclass(frozen=True, slots=True)
class _Parts:
    """The part size behind an object's checksum. None: the checksum is of the whole object. `certain`: it is not a
    guess."""

    size: int | None
    certain: bool


@dataclass
class Get:
    store: Store
    target: TargetFolder
    report: TransferReport
    overwrite: bool = False
    # Paths of the files and folders that this download makes.
    _files: set[tuple[str, ...]] = field(default_factory=set)
    _folders: set[tuple[str, ...]] = field(default_factory=set)
    _inodes: set[tuple[int, int]] = field(default_factory=set)

    def fetch(self, wanted: Iterable[WantedObject]) -> None:
        """Returns when all objects are here. Objects that could not be fetched become problems of the report."""
        with Workers() as workers:
            for found in wanted:
                item = found.item
                if found.path.endswith("/") and not item.size:
                    continue  # an empty object whose name ends in a slash is a client's marker of a folder
                steps, why = local_path(found.path)
                why = why or self._clash(steps)
                if why:
                    self.report.problem(item.name, why)
                    continue
                self.report.add(expected=item.size)
                if item.size <= streams.PART_BYTES:
                    workers.give(partial(self._small, item, steps))
                else:
                    workers.finish()
                    self._large(workers, item, steps)
            workers.finish()

    def _clash(self, steps: tuple[str, ...]) -> str:
        above = {steps[:end] for end in range(1, len(steps))}
        if above & self._files or steps in self._folders:
            return "the bucket has an object and a folder of this name, which cannot both be in one folder here"
        self._files.add(steps)
        self._folders |= above
        return ""

    def _small(self, item: StoredObject, steps: Sequence[str]) -> None:
        try:
            if (replace := self._replaces(item, steps)) is None:
                return
            with open_draft(self.target, item) as draft:
                sink = draft.sink(0, lambda count: self.report.add(sent=count))
                if item.size:
                    self.store.read(item, 0, item.size, sink)
                self._finish(draft, item, steps, replace, self._parts_of(item))
        except FileProblemError as problem:
            self.report.problem(item.name, problem)

    def _large(self, workers: Workers, item: StoredObject, steps: Sequence[str]) -> None:
        """Runs in the main thread. Only the parts are tasks of the workers."""
        try:
            if (replace := self._replaces(item, steps)) is None:
                return
            parts = self._parts_of(item)
            ranges = dict(enumerate(streams.part_ranges(item.size, parts.size or streams.part_bytes(item.size)), 1))
            with open_draft(self.target, item, ranges) as draft:
                self.report.add(kept=sum(ranges[number][1] for number in draft.digests))
                self._fetch_parts(workers, draft, item, ranges)
                self._finish(draft, item, steps, replace, parts)
        except FileProblemError as problem:
            self.report.problem(item.name, problem)

    def _fetch_parts(
        self, workers: Workers, draft: Draft, item: StoredObject, ranges: Mapping[int, tuple[int, int]]
    ) -> None:
        problems: list[FileProblemError] = []

        def fetch(number: int, start: int, length: int) -> None:
            if problems:
                return
            sink = draft.sink(start, lambda count: self.report.add(sent=count))
            try:
                self.store.read(item, start, length, sink)
                draft.arrived(number, sink.digest)
            except FileProblemError as problem:
                problems.append(problem)

        for number, (start, length) in ranges.items():
            if number not in draft.digests:
                workers.give(partial(fetch, number, start, length))
        workers.finish()
        for problem in problems:
            if isinstance(problem, ObjectChangedError):
                draft.forget()
            raise problem

    def _parts_of(self, item: StoredObject) -> _Parts:
        """The parts that the object was uploaded in, if known. Then each part can be verified on arrival."""
        if item.checksum and "-" not in item.checksum:
            return _Parts(None, True)
        seen = self.store.look(item.name)
        stated = seen[1] if seen else None
        possible = streams.possible_parts(item.size, item.checksum or (seen[0].checksum if seen else ""), stated)
        return _Parts(next(iter(possible), None), bool(possible) and possible[0] == stated)

    def _replaces(self, item: StoredObject, steps: Sequence[str]) -> bool | None:
        """Whether a file will be replaced. None: the same content is there already. FileProblemError: other content
        is there, and must stay."""
        file = self.target.lookup(steps)
        if file is None:
            return False
        try:
            status = os.fstat(file)
            if (status.st_dev, status.st_ino) in self._inodes:
                raise FileProblemError("another object of this download has the same file name on this system")
            if status.st_size == item.size and streams.matches_checksum(file, item.size, item.checksum):
                self.report.add(there=1, kept=item.size)
                return None
        finally:
            os.close(file)
        if not self.overwrite:
            raise FileProblemError(f"a file of this name with other content is there; {OVERWRITE}")
        return True

    def _finish(self, draft: Draft, item: StoredObject, steps: Sequence[str], replace: bool, parts: _Parts) -> None:
        digests = (digest for _, digest in sorted(draft.digests.items()))
        matches = parts.size is not None and checksum_of_parts(digests) == item.checksum
        if not matches and not (
            item.checksum and streams.matches_checksum(draft.file, item.size, item.checksum, parts.size)
        ):
            if parts.certain:
                draft.forget()
                raise FileProblemError("its checksum differs from the one that the bucket states; fetch it again")
            self.report.remark(item.name, UNVERIFIED)
        status = os.fstat(draft.file)
        self._inodes.add((status.st_dev, status.st_ino))
        self.target.place(draft.name, steps, replace)
        draft.forget()
        self.report.add(moved=1)
