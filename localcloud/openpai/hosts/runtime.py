# SPDX-License-Identifier: Apache-2.0
"""The first program of a task. It runs the plugins' commands before the user's command, the command itself, and the
plugins' commands after it.

The hosts copy this file into the task, where it runs with the task's Python and only the standard library. It writes
the output of all scripts to one stream. Each line has a prefix of two characters: a letter for the log that it belongs
to, and `.` for a whole line or `+` for a part of a line that goes on.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress

# Variables that the hosts set: the folder of this file and the scripts, and the grace period before scripts are killed.
PLACE, GRACE = "TRAINYARD_TASK", "TRAINYARD_TASK_GRACE"
BEFORE, COMMAND, AFTER = "before.sh", "command.sh", "after.sh"
OUTPUT, ERRORS, RUNTIME = "o", "e", "r"
WHOLE, GOES_ON = ".", "+"
_CHUNK = 32 * 1024
# An unfinished line is passed on when no output follows for this time,
_QUIET_SECONDS = 0.2
# or when its beginning has waited for this time, as in a progress bar.
_LONGEST_SECONDS = 1.0
# After a script has ended, remaining child processes may print for this time.
_LAST_SECONDS = 2.0

# The process id of the running script; the signal that ended the task. Lists, because signal handlers change them.
_scripts: list[int] = []
_ends: list[int] = []


def main() -> int:
    """Runs the scripts, and returns the task's exit code."""
    place = os.environ.pop(PLACE)
    grace = float(os.environ.pop(GRACE))
    os.environ["PAI_WORK_DIR"] = os.getcwd()
    # OpenPAI's first process does not forward SIGTERM: scripts continue until the cluster kills them after the grace
    # period.
    signal.signal(signal.SIGTERM, lambda number, frame: signal.setitimer(signal.ITIMER_REAL, grace))
    signal.signal(signal.SIGALRM, _kill_script)
    code = _run_script(place, BEFORE, (RUNTIME, RUNTIME))
    if code == 0:
        _write_message("the command starts")
        code = _run_script(place, COMMAND, (OUTPUT, ERRORS))
        _write_message(f"the command ended with code {code}")
    return code or _run_script(place, AFTER, (RUNTIME, RUNTIME))


def _run_script(place: str, name: str, kinds: tuple[str, str]) -> int:
    """Runs a script, and passes on its output. Returns its exit code; 0 if there is no such script."""
    script = os.path.join(place, name)
    if not os.path.exists(script):
        return 0
    if _ends:
        return 128 + _ends[0]
    pipes = [os.pipe(), os.pipe()]
    outputs = {reader: Output(kind) for (reader, _), kind in zip(pipes, kinds)}  # noqa: B905 - for Python 3.9
    process = subprocess.Popen(
        ["bash", script], stdin=subprocess.DEVNULL, stdout=pipes[0][1], stderr=pipes[1][1], start_new_session=True
    )
    _scripts.append(process.pid)
    for _, writer in pipes:
        os.close(writer)
    left = _LAST_SECONDS
    while outputs and left > 0:
        ready = select.select(list(outputs), [], [], _QUIET_SECONDS)[0]
        _pass_on_output(outputs, ready)
        if process.poll() is not None and (_ends or not ready):
            left -= _LAST_SECONDS if _ends else _QUIET_SECONDS
    for output in outputs.values():
        output.flush()
    code = process.wait()
    _scripts.remove(process.pid)
    return 128 - code if code < 0 else code


def _pass_on_output(outputs: dict[int, Output], ready: list[int]) -> None:
    """Passes on new output. A stream whose unfinished line has been passed on in part comes first."""
    for reader in sorted(ready, key=lambda one: not outputs[one].begun):
        for number, other in outputs.items():
            if other.begun and number != reader:
                other.flush()
        if not outputs[reader].take(os.read(reader, _CHUNK)):
            del outputs[reader]
    for output in outputs.values():
        if not ready or output.waits > _LONGEST_SECONDS:
            output.flush()


def _kill_script(number: int, frame: object) -> None:
    """Kills the script. Its child processes end after this program, because its host ends then."""
    _ends.append(signal.SIGKILL)
    for script in _scripts:
        with suppress(ProcessLookupError):
            os.killpg(script, signal.SIGKILL)


class Output:
    """One output stream of a script."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._rest = b""
        self._shown = time.monotonic()
        # Whether the beginning of an unfinished line has been passed on.
        self.begun = False

    @property
    def waits(self) -> float:
        """How long an unfinished line has waited, in seconds."""
        return time.monotonic() - self._shown if self._rest else 0.0

    def take(self, chunk: bytes) -> bool:
        """Passes on whole lines. Returns False at the end of the stream."""
        if not self._rest:
            self._shown = time.monotonic()
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            _write_framed(self._kind, WHOLE, line)
            self.begun = False
        if not chunk or len(self._rest) >= _CHUNK:
            self.flush()
        return bool(chunk)

    def flush(self) -> None:
        """Passes on the unfinished line."""
        if self._rest:
            _write_framed(self._kind, GOES_ON, self._rest)
            self._rest, self.begun = b"", True


def _write_message(text: str) -> None:
    _write_framed(RUNTIME, WHOLE, text.encode())


def _write_framed(kind: str, end: str, line: bytes) -> None:
    sys.stdout.buffer.write(kind.encode() + end.encode() + line + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
