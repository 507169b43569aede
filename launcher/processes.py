# SPDX-License-Identifier: Apache-2.0
"""The processes of a node. Each has a process group of its own, and ends together with all its descendants."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from launcher import exits
from launcher.activity import Noise
from launcher.output import Output
from launcher.redraws import bar_of, whole_lines

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_POLL_SECONDS = 0.02
_DRAIN_SECONDS = 5.0
_READ_SECONDS = 2.0


@dataclass(frozen=True)
class Spec:
    """A process to start. A helper serves the others and ends with them."""

    words: Sequence[str]
    environment: Mapping[str, str]
    prefix: str
    folder: str
    helper: bool = False


@dataclass
class SideProcess:
    """A process beside the node's work. Its output is not printed, and its end does not end the node's part."""

    process: subprocess.Popen[bytes]
    last_line: str = field(default="", init=False)
    _closed: bool = field(default=False, init=False)
    _ended: float = field(default=0.0, init=False)

    def keep(self, lines: Sequence[bytes]) -> None:
        """Keeps the last line that is not blank. An empty list means the end of the output."""
        self._closed = self._closed or not lines
        texts = [line.decode(errors="replace").strip() for line in lines]
        self.last_line = next((text for text in reversed(texts) if text), self.last_line)

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs, and for a short time until its output has ended (a child may hold it)."""
        code = self.process.poll()
        if code is None:
            return None
        self._ended = self._ended or time.monotonic()
        read = self._closed or time.monotonic() - self._ended > _READ_SECONDS
        return exits.of_process(code) if read else None


class ChildProcesses:
    """All processes that this node runs. One thread passes on their output."""

    def __init__(self, noise: Noise | None = None) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        # Become the parent of our processes' orphans, so that they can be ended.
        self._libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._started: list[tuple[Spec, subprocess.Popen[bytes]]] = []
        self._side_processes: list[SideProcess] = []
        self._output = Output(noise.complaint, noise.once) if noise else Output()

    def start(self, spec: Spec) -> None:
        """Starts a process. OSError if that is not possible."""
        process = self._process(spec)
        self._started.append((spec, process))
        self._output.show(process, spec.prefix)

    def start_side_process(self, spec: Spec) -> SideProcess:
        """Starts a process that may fail; `clear` ends it too. OSError if it cannot be started."""
        made = SideProcess(self._process(spec))
        self._side_processes = [*(process for process in self._side_processes if process.code is None), made]
        self._output.give(made.process, made.keep)
        return made

    def _process(self, spec: Spec) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            spec.words, env=spec.environment, cwd=spec.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=self._in_child,
        )  # fmt: skip

    def _in_child(self) -> None:
        self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    @property
    def written(self) -> int:
        """How many bytes they have written, without complaints."""
        return self._output.written

    @property
    def last_line(self) -> str:
        """Their last line that is neither blank nor a complaint."""
        return "".join(whole_lines([self._output.last.decode(errors="replace")])[-1:])

    @property
    def bar(self) -> str:
        """The line that they redraw, in its present form; empty if there is none."""
        return bar_of(self._output.bar.decode(errors="replace"))

    def ended(self) -> list[tuple[Spec, int]]:
        """The processes that have ended, with their codes. Also reaps adopted orphans."""
        found = []
        for spec, process in self._started:
            code = process.poll()
            if code is not None:
                found.append((spec, exits.of_process(code)))
        self._reap_adopted()
        return found

    @property
    def running(self) -> list[Spec]:
        """The processes that have not ended."""
        return [spec for spec, process in self._started if process.poll() is None]

    @property
    def command_pids(self) -> list[int]:
        """The ids of the processes that have not ended, without helpers."""
        return [process.pid for spec, process in self._started if not spec.helper and process.poll() is None]

    def signal(self, number: int, helpers: bool = True) -> None:
        """Sends a signal to every process group."""
        for spec, process in self._started:
            if process.poll() is None and (helpers or not spec.helper):
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, number)

    def stop(self, grace: float, only: Callable[[Spec], bool] = lambda spec: True) -> None:
        """Sends SIGTERM, and SIGKILL after `grace` seconds: also to what ended processes left in their groups."""
        chosen = [process for spec, process in self._started if only(spec)]
        for process in chosen:
            if process.poll() is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + grace
        while any(process.poll() is None for process in chosen) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        for process in chosen:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def clear(self, grace: float) -> None:
        """Ends all processes, adopted orphans too, and passes on the rest of their output."""
        self.stop(grace)
        children = Path(f"/proc/self/task/{os.getpid()}/children")
        while True:
            left = children.read_text().split() if children.exists() else []
            if not left:
                break
            for pid in left:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(int(pid), signal.SIGKILL)
            self._reap_adopted()
            time.sleep(_POLL_SECONDS)
        self._output.drain(_DRAIN_SECONDS)
        self._started.clear()
        self._side_processes.clear()

    def _reap_adopted(self) -> None:
        processes = [*(process for _, process in self._started), *(one.process for one in self._side_processes)]
        own = {process.pid for process in processes}
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            if found.si_pid in own:
                for process in processes:
                    process.poll()
                if any(process.pid == found.si_pid and process.returncode is None for process in processes):
                    return
            else:
                with suppress(ChildProcessError):
                    os.waitpid(found.si_pid, 0)
