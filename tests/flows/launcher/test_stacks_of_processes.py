# SPDX-License-Identifier: Apache-2.0
"""Stacks of real processes: which of them say where they are, and that all of them live on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from launcher.stacks import taking
from launcher.stacks.frames import HANDLER, MAIN_THREAD, MOST_FRAMES, PROC, PY_SPY, ProcessStack
from launcher.stacks.naming import find_rank_place
from launcher.stacks.report import HANDLER_FOLDER
from launcher.stacks.taking import StackTaker
from tests.support.interpreters import pythons
from tests.support.waiting import LONGEST_SECONDS, eventually

SECONDS = 60.0
HANGS = """
import sys, time
def evaluate():
    print("up", flush=True)
    time.sleep(600)
evaluate()
"""
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a program as the launcher does, and waits for its first line. At the end all must still live."""
    started: list[subprocess.Popen[str]] = []

    def begin(words: Sequence[str], text: str = HANGS, lines: int = 1, **variables: str) -> subprocess.Popen[str]:
        (tmp_path / "train.py").write_text(text)
        environment = {**os.environ, "PYTHONPATH": str(HANDLER_FOLDER), **variables}
        process = subprocess.Popen(
            words, cwd=tmp_path, env=environment, text=True, stdout=subprocess.PIPE, start_new_session=True
        )
        started.append(process)
        assert process.stdout is not None
        assert all(process.stdout.readline() for _ in range(lines))
        return process

    yield begin
    ended = [process.args for process in started if process.poll() is not None]
    for process in started:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=LONGEST_SECONDS)
    assert not ended


def take(process: subprocess.Popen[str], path: str = "/nowhere") -> dict[int, ProcessStack]:
    """The stacks of a process and of those below it. This process is the launcher."""
    found = StackTaker(path).take_stacks([process.pid], SECONDS)
    own, below = {process.pid}, list[ProcessStack]()
    for stack in found:
        if stack.pid in own or stack.parent in own:
            own.add(stack.pid)
            below.append(stack)
    return {stack.pid: stack for stack in below}


def answered(process: subprocess.Popen[str], count: int = 1) -> list[ProcessStack]:
    """The same, as soon as `count` of them are old enough for a signal, and have answered it."""
    found = eventually(
        lambda: list(take(process).values()),
        lambda stacks: sum(stack.how == HANDLER for stack in stacks) >= count,
        describe=lambda: str(take(process)),
    )
    return [stack for stack in found if stack.how == HANDLER]


def innermost(stack: ProcessStack) -> tuple[str, int]:
    return stack.main_frames[0].function, stack.main_frames[0].line


@pytest.mark.parametrize("python", [Path(sys.executable), *pythons("3.8", "3.12", "3.13")], ids=str)
def test_a_process_that_waits_in_c_code_says_where(start: Start, python: Path, tmp_path: Path) -> None:
    process = start([str(python), "train.py"])
    for _ in range(3):
        (stack,) = answered(process)
        assert (stack.parent, innermost(stack)) == (os.getpid(), ("evaluate", 5))
        assert stack.command == f"{python} train.py"
    where, waits = find_rank_place([stack], str(tmp_path), [process.pid])
    assert (where, waits) == ({"function": "evaluate", "file": "train.py", "line": 5}, None)


def test_a_thread_that_waits_for_a_lock_says_where(start: Start) -> None:
    text = HANGS.replace("time.sleep(600)", "lock.acquire()").replace(
        "def eval", "lock = L()\nlock.acquire()\ndef eval"
    )
    process = start([sys.executable, "train.py"], f"from threading import Lock as L\n{text}")
    assert innermost(answered(process)[0]) == ("evaluate", 8)


FORKS = """
import multiprocessing, sys, time
def below():
    print("up", flush=True)
    time.sleep(600)
if __name__ == "__main__":
    child = multiprocessing.get_context(sys.argv[1]).Process(target=below)
    child.start()
    child.join()
"""


@pytest.mark.parametrize(("method", "count"), [("fork", 2), ("spawn", 3), ("forkserver", 4)])
def test_children_of_multiprocessing_say_where(start: Start, method: str, count: int, tmp_path: Path) -> None:
    """Python's own helpers count, too."""
    process = start([sys.executable, "train.py", method], FORKS)
    stacks = answered(process, count)
    places = {innermost(stack) for stack in stacks if stack.pid != process.pid}
    assert ("below", 5) in places
    where, _ = find_rank_place(stacks, str(tmp_path), [process.pid])
    assert where == {"function": "below", "file": "train.py", "line": 5}, "its parent only waits for it"


def test_a_chain_of_programs_names_the_one_that_trains(start: Start, tmp_path: Path) -> None:
    """As torchrun: `python -m` of a package that starts the script."""
    (tmp_path / "agent").mkdir()
    chain = "import subprocess, sys\nsubprocess.run([sys.executable, '-u', *sys.argv[1:]])\n"
    (tmp_path / "agent" / "__main__.py").write_text(chain)
    process = start([sys.executable, "-m", "agent", "train.py"])
    stacks = answered(process, 2)
    assert find_rank_place(stacks, str(tmp_path), [process.pid])[0] == {
        "function": "evaluate",
        "file": "train.py",
        "line": 5,
    }


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_an_isolated_python_gets_no_signal(start: Start, option: str) -> None:
    process = start([sys.executable, option, "train.py"])
    (stack,) = take(process).values()
    assert (stack.how, stack.main_frames) == (PROC, ())
    assert stack.threads[0].frames, "the kernel says where it waits"


def test_a_program_without_a_handler_gets_no_signal(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    sent, kill = list[int](), os.kill

    def note(pid: int, number: int) -> None:
        sent.append(pid)
        kill(pid, number)

    monkeypatch.setattr(os, "kill", note)
    process = start([sys.executable, "-c", "import subprocess as s; s.run('echo up; exec sleep 600', shell=True)"])
    answered(process)
    (witness,) = [stack for stack in take(process).values() if stack.pid != process.pid]
    assert (witness.command, witness.how) == ("sleep 600", PROC)
    assert set(sent) == {process.pid}


@pytest.mark.parametrize(("name", "line"), [
    ("blocks the signal", "signal.pthread_sigmask(signal.SIG_BLOCK, {41})"),
    ("has closed its files", "os.closerange(3, 100); open('other', 'w')"),
    ("does not catch it any more", "signal.signal(41, signal.SIG_DFL)"),
    ("computes and has no handler", "signal.signal(42, signal.SIG_DFL)\nprint('up', flush=True)\nwhile True: pass"),
    ("has its own handler and no file", "faulthandler.unregister(41); signal.signal(41, exit); os.closerange(3, 99)"),
])  # fmt: skip
def test_a_process_that_would_not_answer_gets_no_signal(start: Start, name: str, line: str, tmp_path: Path) -> None:
    process = start([sys.executable, "train.py"], f"import faulthandler, os, signal\n{line}\n{HANGS}")
    eventually(lambda: StackTaker("")._age(_process_of(process.pid)) > taking._YOUNGEST_SECONDS)
    (stack,) = take(process).values()
    assert stack.how == PROC
    assert not (tmp_path / "other").exists() or not (tmp_path / "other").read_text()


def _process_of(pid: int) -> taking._Process:
    row = StackTaker("")._stat(pid)
    return taking._Process(pid, int(row[1]), row[19], row[0])


@pytest.mark.parametrize("python", [Path(sys.executable), *pythons("3.8", "3.12", "3.13")], ids=str)
def test_a_process_that_computes_says_where_between_two_steps(start: Start, python: Path) -> None:
    """faulthandler crashed on frames of running threads, which may be half made."""
    process = start([str(python), "train.py"], HANGS.replace("time.sleep(600)", "while True: pass"))
    for stack in (answered(process)[0], *take(process).values()):
        assert (stack.how, innermost(stack)) == (HANDLER, ("evaluate", 5))


def test_a_call_of_c_code_that_computes_is_not_disturbed(start: Start) -> None:
    process = start([sys.executable, "train.py"], HANGS.replace("time.sleep(600)", "sum(range(10**13))"))
    eventually(lambda: StackTaker("")._age(_process_of(process.pid)) > taking._YOUNGEST_SECONDS)
    (stack,) = take(process).values()
    assert (stack.how, stack.threads[0].frames[0].function) == (PROC, "running")


def test_a_stopped_process_is_not_woken(start: Start) -> None:
    process = start([sys.executable, "train.py"])
    answered(process)
    os.kill(process.pid, signal.SIGSTOP)
    eventually(lambda: _process_of(process.pid).state, lambda state: state == "T")
    (stack,) = take(process).values()
    assert (stack.how, stack.halted, _process_of(process.pid).state) == (PROC, True, "T")


def test_the_teams_sitecustomize_runs_as_without_ours(start: Start, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys\nprint('theirs', __file__, flush=True)\n")
    shows = "import sitecustomize, sys, time\nprint(sitecustomize.__file__, flush=True)\nprint(*sys.path, flush=True)\n"
    path = f"{HANDLER_FOLDER}{os.pathsep}{own}"
    process = start([sys.executable, "train.py"], f"{shows}time.sleep(600)\n", lines=0, PYTHONPATH=path)
    assert process.stdout is not None
    assert process.stdout.readline().split() == ["theirs", str(own / "sitecustomize.py")]
    assert process.stdout.readline().strip() == str(own / "sitecustomize.py")
    folders = process.stdout.readline().split()
    assert str(HANDLER_FOLDER) not in folders, "modules are found as without it"
    assert str(own) in folders
    answered(process)


@pytest.mark.parametrize(("text", "says"), [
    ("import nothing_of_that_name", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
    ("raise ValueError('own')", "ValueError: own"),
])  # fmt: skip
def test_an_error_of_the_teams_sitecustomize_is_its_own(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(text)
    words = [sys.executable, "-c", "print('goes on')"]
    alone, chained = (
        subprocess.run(words, env={"PYTHONPATH": path}, capture_output=True, text=True, check=True)
        for path in (str(tmp_path), f"{HANDLER_FOLDER}{os.pathsep}{tmp_path}")
    )
    assert (chained.stdout, chained.stderr) == (alone.stdout, alone.stderr)
    assert says in alone.stderr


@pytest.mark.parametrize("python", [*pythons("2.7", "3.6", "3.7"), Path(sys.executable)], ids=str)
def test_any_python_runs_whether_it_can_have_the_handler_or_not(python: Path) -> None:
    done = subprocess.run(
        [str(python), "-c", "print('runs')"], env={"PYTHONPATH": str(HANDLER_FOLDER)}, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "runs\n")
    assert not done.stderr or "2.7" in str(python)


DEEP = """
import sys, threading, time
sys.setrecursionlimit(20_000)
def deep(left):
    if left:
        return deep(left - 1)
    print("up", flush=True)
    time.sleep(600)
threading.stack_size(65536)
for _ in range(500):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
deep(10_000)
"""


@pytest.mark.parametrize("option", ["-u", "-I"])
def test_many_threads_and_frames_are_cut(start: Start, option: str) -> None:
    process = start([sys.executable, option, "train.py"], DEEP)
    if option == "-u":
        (thread,) = answered(process)[0].threads
        assert (thread.name, len(thread.frames)) == (MAIN_THREAD, MOST_FRAMES)
    else:
        (stack,) = take(process).values()
        assert len(stack.threads) == taking._MOST_TASKS


def test_a_process_that_ends_meanwhile_is_left_out(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    process = start([sys.executable, "train.py"])
    answered(process)
    gone = taking._Process(2**22 + 1, os.getpid(), "1", "S")
    known = StackTaker._processes
    monkeypatch.setattr(StackTaker, "_processes", lambda taker, first: [gone, *known(taker, first)])
    assert [stack.pid for stack in StackTaker("").take_stacks([], SECONDS) if stack.pid == process.pid]


def test_without_time_only_the_kernel_is_asked(start: Start) -> None:
    process = start([sys.executable, "train.py"])
    answered(process)
    assert {stack.how for stack in StackTaker("").take_stacks([process.pid], 0.0)} == {PROC}


PROGRAM = """#!/bin/sh
printf '%s ' "$@" >> "$0.said"
{}
"""
DUMP = '[{"os_thread_id": %s, "frames": [{"name": "of_py_spy", "filename": "train.py", "line": 3}]}]'


def py_spy(folder: Path, does: str) -> Path:
    folder.mkdir()
    (folder / "py-spy").write_text(PROGRAM.format(does))
    (folder / "py-spy").chmod(0o755)
    return folder


def test_py_spy_is_asked_first_where_the_image_has_it(start: Start, tmp_path: Path) -> None:
    process = start([sys.executable, "train.py"])
    folder = py_spy(tmp_path / "bin", f"""[ "$5" = {process.pid} ] && echo '{DUMP % process.pid}'""")
    (stack,) = take(process, str(folder)).values()
    assert (stack.how, innermost(stack)) == (PY_SPY, ("of_py_spy", 3))
    assert f"dump --json --nonblocking --pid {process.pid} " in (folder / "py-spy.said").read_text()


@pytest.mark.parametrize("does", ["exit 1", "echo '[]'", "yes '[[[[['", "exec sleep 600"])
def test_the_handler_answers_where_py_spy_does_not(start: Start, tmp_path: Path, does: str) -> None:
    process = start([sys.executable, "train.py"])
    answered(process)
    folder = py_spy(tmp_path / "bin", does)
    stack = take(process, str(folder))[process.pid]
    assert (stack.how, innermost(stack)) == (HANDLER, ("evaluate", 5))


def test_another_users_process_lives_on(start: Start) -> None:
    """As root's launcher sees it, where this test has the right to start one."""
    if os.getuid():
        pytest.skip("only root may start processes of others")
    text = "import os\nos.setuid(65534)\n" + HANGS
    process = start([sys.executable, "train.py"], text)
    assert take(process)[process.pid].how in (HANDLER, PROC)
