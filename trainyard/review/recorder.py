# SPDX-License-Identifier: Apache-2.0
"""Starts the process that records programs (record.py), and asks it."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock, Timer
from types import TracebackType
from typing import Any

from trainyard.engine.isolated import isolated_python
from trainyard.review.recording import RECORDING_FORMAT, Recorded
from trainyard.review.sandbox import ENDING_SECONDS, SandboxError, start_sandbox

RECORD_MODULE = "trainyard.review.record"
# Without the collector, which would walk the packages' objects again and again while they are imported.
_RECORD = f"import gc, runpy; gc.disable(); runpy.run_module({RECORD_MODULE!r}, run_name='__main__', alter_sys=True)"
# The variables that a program under review inherits: no credentials, no settings.
_INHERITED = ("PATH", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "SYSTEMROOT", "LD_LIBRARY_PATH")
# A program has its own timeout (record.py), which its code could lift.
RECORDING_SECONDS = 960
LONGEST_ANSWER = 64 << 20


class RecordingError(Exception):
    """The program of a stack failed, by a bug in trainyard or in the revision's code. `where`: at which revision."""

    where = ""


class RecordingProcess:
    """Runs the code of `tree`. Programs write their files into a temporary folder, which is removed at the end."""

    def __init__(self, tree: Path, shown: Iterable[Path] = ()) -> None:
        """`shown`: what programs read beside the code of `tree`."""
        self._tree = tree
        self._one_at_a_time = Lock()
        self._is_late = False
        self._folder = tempfile.TemporaryDirectory(prefix="trainyard-review-")
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 (as long as the process)
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        folder = Path(self._folder.name).resolve()
        tree = tree.resolve()
        own = {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(folder), "TMPDIR": str(folder)}
        command = isolated_python("-c", _RECORD, packages_of_user=True)
        try:
            started = start_sandbox(command, inherited | own, tree, folder, (tree, *shown), self._errors)
        except SandboxError as problem:
            self._errors.close()
            self._folder.cleanup()
            raise RecordingError(str(problem)) from None
        self._started, self._process, self.not_isolated = started, started.process, started.not_isolated

    def __enter__(self) -> RecordingProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._started.end()
        self._process.communicate()
        self._errors.close()
        self._folder.cleanup()

    def record(self, file: Path, platform: str, before: Recorded | None = None) -> Recorded:
        """Records the program of this stack file. Its state is that of the recording `before`.

        If the program refuses the change, it is recorded again without a state, so that the change can be shown.
        """
        recorded = self._ask(file, platform, before)
        if recorded.snapshot.refused and before is not None:
            alone = self._ask(file, platform, None)
            shown = replace(alone.snapshot, refused=recorded.snapshot.refused, remarks=recorded.snapshot.remarks)
            return replace(alone, snapshot=shown)
        return recorded

    def _ask(self, file: Path, platform: str, before: Recorded | None) -> Recorded:
        state = {"outputs": before.outputs, "resources": before.resources} if before else {}
        where = os.path.join(os.path.realpath(file.parent), file.name)
        request = {"file": where, "root": os.path.realpath(self._folder.name), "platform": platform, "state": state}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            with self._one_at_a_time:
                timer = Timer(RECORDING_SECONDS, self._end_late)
                timer.start()
                try:
                    self._process.stdin.write(json.dumps(request) + "\n")
                    self._process.stdin.flush()
                    line = self._process.stdout.readline(LONGEST_ANSWER)
                finally:
                    timer.cancel()
        except BrokenPipeError:
            line = ""
        if line and not line.endswith("\n"):
            self._started.end()
            raise RecordingError(
                f"the code of {self._tree} wrote no whole answer of at most {LONGEST_ANSWER >> 20} MiB"
            )
        return self._recorded(json.loads(line) if line else {"error": self._last_words()})

    def _recorded(self, answer: Mapping[str, Any]) -> Recorded:
        if "error" in answer:
            raise RecordingError(str(answer["error"]).strip())
        if answer.get("format") != RECORDING_FORMAT:
            raise RecordingError(f"the code of {self._tree} writes snapshots of another format")
        try:
            return Recorded.of_json(answer)
        except (KeyError, TypeError, AttributeError) as wrong:
            raise RecordingError(f"the code of {self._tree} writes snapshots that cannot be read: {wrong}") from None

    def _end_late(self) -> None:
        self._is_late = True
        self._started.end()

    def _last_words(self) -> str:
        if self._is_late:
            return f"it did not answer within {RECORDING_SECONDS} s"
        with suppress(subprocess.TimeoutExpired):
            # The supervisor says why it has ended the program after it has done so.
            self._process.wait(ENDING_SECONDS)
        self._errors.seek(0)
        return self._errors.read()[-2000:] or "the process that records programs ended"
