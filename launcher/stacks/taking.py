# SPDX-License-Identifier: Apache-2.0
"""Takes the stacks of the processes below the launcher, without disturbing any of them, and within a time.

py-spy, if the image has it, reads their memory. Otherwise a signal makes Python write its main thread's stack
(handler/sitecustomize.py). It is sent only to a process that certainly has that handler. There are two of them, because
the stack of a running thread may be half made, and faulthandler in Python 3.11 to 3.13 crashed on such stacks in one of
some hundred tries: a main thread that computes gets the other one, which Python answers between two of its steps. Of
all others, the kernel says where they are.
"""

from __future__ import annotations

import os
import select
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from launcher.activity import read_descendants
from launcher.compatibility import shell_words
from launcher.stacks.frames import (
    HANDLER,
    PROC,
    PY_SPY,
    Frame,
    ProcessStack,
    ThreadStack,
    parse_handler_dump,
    parse_py_spy_dump,
    runs_event_loop,
)

# No package of Python uses these signals, nor do the C library and the platforms. 10 and 12 are the team's.
SIGNAL_WHILE_ASLEEP, SIGNAL_WHILE_COMPUTING = 41, 42
# How /proc shows the handler's file.
_FILE = "/memfd:trainyard-stacks (deleted)"
MOST_PROCESSES = 64
_MOST_FILES = 5000
_MOST_TASKS = 50
_MOST_COMMAND_BYTES = 4096
_MOST_DUMP_BYTES = 256 * 1024
# A process whose file has grown to this is not asked again.
_LARGEST_FILE = 16 * 1024 * 1024
_MOST_JSON_BYTES = 4 * 1024 * 1024
_PY_SPY_SECONDS, _HANDLER_SECONDS, _TURN = 1.0, 0.5, 0.002
# py-spy that has failed for so many processes, and for no other, may not read them.
_PY_SPY_TRIES = 2
# How often to look whether the main thread sleeps through a turn. One that never does, computes.
_SLEEP_TRIES = 10
# A process that is younger may be about to become another program, which would have no handler.
_YOUNGEST_SECONDS = 1.0
_SLEEPS, _RUNS, _HALTED = "S", "R", "Tt"
_STATES = {"R": "running", "S": "sleeping", "D": "waiting for a device", "T": "stopped", "t": "traced"}
_TICKS = os.sysconf("SC_CLK_TCK")
_KERNEL = "kernel"
_STATUS_ROWS = frozenset(("SigPnd", "ShdPnd", "SigBlk", "SigCgt", "voluntary_ctxt_switches"))


@dataclass(frozen=True)
class _Process:
    pid: int
    parent: int
    began: str
    state: str


@dataclass
class StackTaker:
    """Takes stacks. `path` is the PATH in which py-spy is looked for."""

    path: str
    proc: Path = Path("/proc")
    root: int = field(default_factory=os.getpid)
    _failures: int = field(default=0, init=False)
    _py_spy: str | None = field(default=None, init=False)

    def take_stacks(self, first: Sequence[int], seconds: float) -> list[ProcessStack]:
        """The stacks of all processes below the launcher, those of `first` and below them in front. When the time is
        over, only the kernel is asked about the rest."""
        deadline = time.monotonic() + seconds
        self._failures, self._py_spy = 0, shutil.which("py-spy", path=self.path)
        found = []
        for process in self._processes(first)[:MOST_PROCESSES]:
            with suppress(OSError, ValueError):  # it has ended
                found.append(self._stack_of(process, deadline))
        return found

    def _processes(self, first: Sequence[int]) -> list[_Process]:
        """Those nearest to the launcher first."""
        below = read_descendants(self.proc, self.root)
        known = {pid: _Process(pid, int(row[1]), began, row[0]) for (pid, began), row in below.items()}

        def place(process: _Process) -> tuple[bool, int, int]:
            depth, preferred, at = 0, False, process.pid
            while at in known:
                depth, preferred, at = depth + 1, preferred or at in first, known[at].parent
            return not preferred, depth, process.pid

        return sorted((process for process in known.values() if process.state != "Z"), key=place)

    def _stack_of(self, process: _Process, deadline: float) -> ProcessStack:
        command, threads, how = self._command(process.pid), tuple[ThreadStack, ...](), PROC
        if time.monotonic() < deadline:
            file = self._handler_file(process.pid)
            if self._py_spy and self._failures < _PY_SPY_TRIES and (file or _names_python(command)):
                threads, how = self._ask_py_spy(process.pid, deadline), PY_SPY
                self._failures = self._failures + 1 if not threads else -MOST_PROCESSES
            if not threads and file:
                threads, how = self._ask_handler(process, file, deadline), HANDLER
        if not threads:
            threads, how = tuple(self._ask_kernel(process.pid)), PROC
        shown = shell_words(command) if command else f"[{_read_text(self.proc / str(process.pid) / 'comm')}]"
        return ProcessStack(process.pid, process.parent, how, shown, threads, process.state in _HALTED)

    def _command(self, pid: int) -> list[str]:
        with open(self.proc / str(pid) / "cmdline", "rb") as file:
            return file.read(_MOST_COMMAND_BYTES).decode(errors="replace").rstrip("\0").split("\0")

    def _ask_py_spy(self, pid: int, deadline: float) -> tuple[ThreadStack, ...]:
        words = [str(self._py_spy), "dump", "--json", "--nonblocking", "--pid", str(pid)]
        ends = min(deadline, time.monotonic() + _PY_SPY_SECONDS)
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        except OSError:
            return ()
        with process:
            assert process.stdout is not None
            content = _read_until(process.stdout.fileno(), ends)
            process.kill()
        return parse_py_spy_dump(content, pid)

    def _handler_file(self, pid: int) -> str:
        """The file into which the process's handler writes; empty if it has none, or has closed it."""
        with suppress(OSError), os.scandir(self.proc / str(pid) / "fd") as files:
            for _, file in zip(range(_MOST_FILES), files):  # `strict` is newer
                with suppress(OSError):
                    if os.readlink(file.path) == _FILE:
                        return file.path
        return ""

    def _ask_handler(self, process: _Process, path: str, deadline: float) -> tuple[ThreadStack, ...]:
        """The main thread, written by its handler, and others if Python wrote it; empty if it cannot be asked, or does
        not answer. A main thread that sleeps in an event loop may be woken: it expects that at any time."""
        if self._age(process) < _YOUNGEST_SECONDS:
            return ()
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            before = os.fstat(file)
            if not stat.S_ISREG(before.st_mode) or before.st_size > _LARGEST_FILE:
                return ()
            number = self._signal_for(process)
            if number is None:
                return ()
            threads = self._answer_to(number, process.pid, file, deadline)
            if number == SIGNAL_WHILE_ASLEEP and runs_event_loop(threads):
                signals = self._signals(process.pid)
                if _mask_has(signals["SigCgt"] & ~signals["SigBlk"], SIGNAL_WHILE_COMPUTING):
                    return self._answer_to(SIGNAL_WHILE_COMPUTING, process.pid, file, deadline) or threads
            return threads
        finally:
            os.close(file)

    def _answer_to(self, number: int, pid: int, file: int, deadline: float) -> tuple[ThreadStack, ...]:
        """Sends the signal, and reads what is then written."""
        before = os.fstat(file).st_size
        os.kill(pid, number)
        ends = min(deadline, time.monotonic() + _HANDLER_SECONDS)
        while time.monotonic() < ends and not self._has_answered(pid, number, file, before):
            time.sleep(_TURN)
        return parse_handler_dump(os.pread(file, _MOST_DUMP_BYTES, before).decode(errors="replace"))

    def _signal_for(self, process: _Process) -> int | None:
        """The signal that the main thread catches now, by whether it sleeps or computes; None: it may not get any.
        While Python makes a child by vfork, the child blocks all signals, and has handlers that it will lose."""
        computes = True
        for _ in range(_SLEEP_TRIES):
            before = self._signals(process.pid)
            time.sleep(_TURN)
            after, row = self._signals(process.pid), self._stat(process.pid)
            sleeps = row[0] == _SLEEPS and before == after
            number = SIGNAL_WHILE_ASLEEP if sleeps else SIGNAL_WHILE_COMPUTING
            if row[19] != process.began or not _mask_has(after["SigCgt"], number) or _mask_has(after["SigBlk"], number):
                return None
            if sleeps:
                return number
            computes = computes and row[0] == _RUNS
        return number if computes else None

    def _has_answered(self, pid: int, number: int, file: int, before: int) -> bool:
        """Whether the handler has written and returned: while it runs, its signal is blocked."""
        signals = self._signals(pid)
        waits = signals["SigPnd"] | signals["ShdPnd"] | signals["SigBlk"]
        return not _mask_has(waits, number) and os.fstat(file).st_size > before

    def _signals(self, pid: int) -> Mapping[str, int]:
        """The main thread's signals, and how often it has run."""
        rows = (line.partition(":") for line in _read_text(self.proc / str(pid) / "status").splitlines())
        return {name: int(value, 16) for name, _, value in rows if name in _STATUS_ROWS}

    def _stat(self, pid: int) -> list[str]:
        return _read_text(self.proc / str(pid) / "stat").rpartition(")")[2].split()

    def _age(self, process: _Process) -> float:
        return float(_read_text(self.proc / "uptime").split()[0]) - int(process.began) / _TICKS

    def _ask_kernel(self, pid: int) -> Iterator[ThreadStack]:
        """Where threads wait in the kernel, as far as this user may see that."""
        folder = self.proc / str(pid) / "task"
        with os.scandir(folder) as tasks:
            names = [task.name for _, task in zip(range(_MOST_TASKS), tasks)]
        for name in sorted(names, key=int):
            with suppress(OSError):
                state = (_read_text(folder / name / "stat").rpartition(")")[2].split() or ["?"])[0]
                frames = [Frame(_kernel_word(folder / name / "wchan") or _STATES.get(state, f"state {state}"), _KERNEL)]
                call = _kernel_word(folder / name / "syscall")
                frames += [Frame(f"system call {call}", _KERNEL)] if call.isdigit() else []
                yield ThreadStack(_read_text(folder / name / "comm").strip(), tuple(frames))


def _mask_has(mask: int, number: int) -> bool:
    return bool(mask >> (number - 1) & 1)


def _names_python(command: Sequence[str]) -> bool:
    return any("python" in os.path.basename(word) for word in command[:2])


def _read_text(file: Path) -> str:
    return file.read_text(errors="replace")


def _kernel_word(file: Path) -> str:
    """The first word of a file that the kernel may hide."""
    with suppress(OSError):
        words = _read_text(file).split()
        return words[0] if words and words[0] != "0" else ""
    return ""


def _read_until(file: int, ends: float) -> bytes:
    """What is written to a pipe until it is closed, or the time is over; at most 4 MiB."""
    parts, size = [], 0
    while size < _MOST_JSON_BYTES:
        ready, _, _ = select.select([file], [], [], max(0.0, ends - time.monotonic()))
        part = os.read(file, 65536) if ready else b""
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)
