# SPDX-License-Identifier: Apache-2.0
"""The processes that record both sides of a change. They start while the command still imports what it needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from trainyard.review.recorder import RecordingError, RecordingProcess
from trainyard.review.revisions import Side, project_of_stacks

_FEW = 10


class Recorders:
    """`names`: of stack files. For the same code, a second process is worth its imports only with many stacks."""

    def __init__(self, names: Sequence[str], after: Side, before: Side | None) -> None:
        seen = tuple(_folders_of_programs(names, after, before))
        earlier_code = before.code if before else after.code
        # Its threads live until the end: a sandbox ends with the thread that started it.
        self._pool = ThreadPoolExecutor(2)
        self._after = self._before = self._pool.submit(RecordingProcess, after.code, seen)
        if earlier_code != after.code or len(names) > _FEW:
            self._before = self._pool.submit(RecordingProcess, earlier_code, seen)

    def __enter__(self) -> Recorders:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for started in {self._after, self._before}:
            with suppress(RecordingError):  # it is raised where the process is asked for
                started.result().__exit__(kind, error, at)
        self._pool.shutdown()

    @property
    def after(self) -> RecordingProcess:
        """Raises RecordingError, as `before` does."""
        return self._after.result()

    @property
    def before(self) -> RecordingProcess:
        return self._before.result()


def _folders_of_programs(names: Sequence[str], after: Side, before: Side | None) -> Iterator[Path]:
    """What the programs of both sides see: the repositories of the stack files, and files that these are links to."""
    for side in filter(None, (after, before)):
        yield side.aside or project_of_stacks(side.stacks)
        for file in filter(None, map(side.file, names)):
            if file.is_symlink() and file.exists():
                yield file.resolve()
