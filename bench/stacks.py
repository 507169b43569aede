# SPDX-License-Identifier: Apache-2.0
"""Stacks of a node's processes, as its launcher takes them: against faulthandler and py-spy alone. And what the handler
adds to each start of a Python below the launcher."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.harness.rows import Aim, Row, in_turns
from launcher.stacks.frames import HANDLER, PY_SPY
from launcher.stacks.report import HANDLER_FOLDER, SECONDS
from launcher.stacks.taking import MOST_PROCESSES, SIGNAL_WHILE_ASLEEP, StackTaker
from tests.support.waiting import eventually

THREADS = 500
# What the handler may add to a start of Python, in milliseconds.
AIM_START = 5.0
_ROUNDS_OF_STARTS = 10
_NO_PROGRAMS = "/nowhere"
_HANGS = """
import sys, threading, time
def evaluate(left):
    if left:
        return evaluate(left - 1)
    print("up", flush=True)
    time.sleep(600)
threading.stack_size(65536)
for _ in range(int(sys.argv[1])):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
evaluate(50)
"""


def rows() -> list[Row]:
    made = [_start_row()]
    with tempfile.TemporaryDirectory(prefix="bench-stacks-") as folder:
        script = Path(folder) / "train.py"
        script.write_text(_HANGS)
        with _processes(script, 1, THREADS) as pids:
            name = f"a process of {THREADS} threads"
            made.append(_handler_row(f"{name}, by the handler: its main thread", pids, None))
            py_spy = shutil.which("py-spy")
            if py_spy:
                made.append(_py_spy_row(f"{name}, by py-spy: all of them", pids[0], py_spy))
            else:
                print("no py-spy in PATH: its row is left out", file=sys.stderr)
        with _processes(script, MOST_PROCESSES, 4) as pids:
            made.append(_handler_row(f"{MOST_PROCESSES} processes of a node", pids, Aim("figure", 1000 * SECONDS)))
    return made


def _start_row() -> Row:
    """The fastest of many starts in turns, because the difference is smaller than what other work makes of a start."""
    with tempfile.TemporaryDirectory(prefix="bench-stacks-") as empty:
        rounds = [
            in_turns(lambda: _start_milliseconds(str(HANDLER_FOLDER)), lambda: _start_milliseconds(empty))
            for _ in range(_ROUNDS_OF_STARTS)
        ]
    ours, plain = (min(min(found[side]) for found in rounds) for side in (0, 1))
    name = "the handler adds to a start of Python"
    return Row(name, ours - plain, "ms", "a start without it", plain, ours / plain, Aim("figure", AIM_START))


def _start_milliseconds(path: str) -> float:
    environment = {"PATH": os.defpath, "PYTHONPATH": path}
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], env=environment, check=True)
    return 1000 * (time.perf_counter() - began)


@contextmanager
def _processes(script: Path, count: int, threads: int) -> Iterator[list[int]]:
    """Processes as the launcher starts them, old enough to be asked."""
    environment = {**os.environ, "PYTHONPATH": str(HANDLER_FOLDER)}
    words = [sys.executable, str(script), str(threads)]
    started = [subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    try:
        assert all(process.stdout is not None and process.stdout.readline() for process in started)
        pids = [process.pid for process in started]
        eventually(lambda: _take(pids, _NO_PROGRAMS, HANDLER))
        yield pids
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.communicate()


def _take(pids: Sequence[int], path: str, how: str) -> bool:
    """Whether they answered in this way, with the frame in which they hang. On a busy machine, one of ten may not."""
    found = StackTaker(path).take_stacks(pids, 10 * SECONDS)
    answers = [stack for stack in found if stack.how == how and "evaluate" in str(stack.main_frames[:2])]
    return len(answers) >= 0.9 * len(pids)


def _handler_row(name: str, pids: Sequence[int], aim: Aim | None) -> Row:
    files = [_handler_file(pid) for pid in pids]
    ours, alone = in_turns(
        lambda: _milliseconds(lambda: _take(pids, _NO_PROGRAMS, HANDLER)),
        lambda: _milliseconds(lambda: all(map(_ask_faulthandler, pids, files))),
    )
    return _row(name, ours, "faulthandler alone", alone, aim)


def _py_spy_row(name: str, pid: int, py_spy: str) -> Row:
    words = [py_spy, "dump", "--json", "--nonblocking", "--pid", str(pid)]
    ours, alone = in_turns(
        lambda: _milliseconds(lambda: _take([pid], str(Path(py_spy).parent), PY_SPY)),
        lambda: _milliseconds(lambda: b"evaluate" in subprocess.run(words, capture_output=True, check=True).stdout),
    )
    return _row(name, ours, "py-spy alone", alone, None)


def _row(name: str, ours: Sequence[float], against: str, floor: Sequence[float], aim: Aim | None) -> Row:
    ratio = statistics.median(one / other for one, other in zip(ours, floor, strict=True))
    return Row(name, statistics.median(ours), "ms", against, statistics.median(floor), ratio, aim)


def _milliseconds(work: Callable[[], bool]) -> float:
    began = time.perf_counter()
    assert work(), "a process did not answer"
    return 1000 * (time.perf_counter() - began)


def _handler_file(pid: int) -> Path:
    files = Path(f"/proc/{pid}/fd").iterdir()
    return next(file for file in files if "trainyard-stacks" in os.readlink(file))


def _ask_faulthandler(pid: int, file: Path) -> bool:
    """Waits for the last line of the dump, which is written in pieces."""
    before = file.stat().st_size
    os.kill(pid, SIGNAL_WHILE_ASLEEP)
    while True:
        with file.open("rb") as dump:
            dump.seek(before)
            if b"in <module>" in dump.read():
                return True
        time.sleep(0.0002)
