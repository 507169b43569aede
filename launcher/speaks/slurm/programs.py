# SPDX-License-Identifier: Apache-2.0
"""`srun`, `scontrol`, `sbatch` and `module` for a script that was written for Slurm, and `batch`, which starts it.

They need no packages, and no module of Python that takes long to import: a script may call them often.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import FrameType

from launcher.speaks.slurm.steps import Step, due_signal, numbered_step
from launcher.speaks.slurm.words import SlurmError, expand_hosts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

# What the launcher tells them: addresses and tasks of all nodes, the rank of this one, its folder, and the run's end.
STATE = "TRAINYARD_SLURM"
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)
_LOOK_SECONDS = 0.02
_OPTIONS_OF_HOSTNAME = ((), ("-i",), ("-I",), ("--ip-address",), ("--all-ip-addresses",), ("-s",), ("-f",))
# A shell tells each task its process id, and becomes the task.
_TASK = ("/bin/sh", "-c", 'SLURM_TASK_PID=$$ exec "$@"', "srun")


def run_slurm_program(words: Sequence[str]) -> int:
    """Runs a program with its arguments, and returns its exit code."""
    name, *arguments = words
    programs = {
        "srun": run_step,
        "scontrol": show_hostnames,
        "sbatch": refuse_submission,
        "module": load_nothing,
        "batch": become_script,
    }
    try:
        code = programs[name](arguments, dict(os.environ), json.loads(os.environ[STATE]))
        sys.stdout.flush()
        return code
    except KeyError:
        sys.stderr.write(f"{name}: error: {STATE} is not set: only a script of a job can call this\n")
    except SlurmError as error:
        sys.stderr.write(f"{name}: error: {error}\n")
    return 1


def run_step(words: Sequence[str], environment: Mapping[str, str], state: Mapping[str, Any]) -> int:
    """Starts the tasks of this node, and waits for them. The others start theirs."""
    step = Step(words, environment, state)
    if not step.command:
        raise SlurmError("no command given to execute")
    step_id = numbered_step(state["folder"])
    if os.path.basename(step.command[0]) == "hostname" and tuple(step.command[1:]) in _OPTIONS_OF_HOSTNAME:
        # Scripts ask one node for the name of another. Every node knows all names.
        for node, count in zip(step.nodes, step.counts):
            sys.stdout.write((node + "\n") * count)
        return 0
    own = state["addresses"][state["rank"]]
    if own not in step.nodes:
        return 0
    shared = {**step.exported(environment), **step.variables(own, step_id, environment)}
    given = _task_input(step)
    tasks = {}
    for rank, variables in step.task_variables(own, environment):
        try:
            tasks[rank] = subprocess.Popen(
                (*_TASK, *step.command), env={**shared, **variables}, cwd=step.options.get("chdir"),
                stdin=subprocess.PIPE if given else None, stdout=subprocess.PIPE if "label" in step.options else None,
                stderr=subprocess.STDOUT if "label" in step.options else None, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise SlurmError(f"{error.filename or step.command[0]}: {error.strerror}") from None
    width = len(str(step.tasks - 1))
    threads = [_start_thread(_label_lines, rank, task.stdout, width) for rank, task in tasks.items() if task.stdout]
    threads += [_start_thread(_feed_input, task.stdin, given) for task in tasks.values() if task.stdin]
    kills = step.options.get("kill-on-bad-exit", environment.get("SLURM_KILL_BAD_EXIT", "0")) != "0"
    code = _wait_for_tasks(tasks, own, kills, *due_signal(state["signal"], state["end"], of_batch=False))
    for thread in threads:
        thread.join()
    return code


def _wait_for_tasks(
    tasks: Mapping[int, subprocess.Popen[bytes]], own: str, kills: bool, number: int, due: float
) -> int:
    """The largest code of the tasks. They get the signals of this process, and `number` at the time that is due."""

    def forward(number: int, _: FrameType | None = None) -> None:
        for task in tasks.values():
            if task.poll() is None:
                with suppress(OSError):
                    os.killpg(task.pid, number)

    for caught in _FORWARDED:
        signal.signal(caught, forward)
    codes: dict[int, int] = {}
    while len(codes) < len(tasks):
        for rank, task in tasks.items():
            code = task.poll()
            if code is None or rank in codes:
                continue
            codes[rank] = 128 - code if code < 0 else code
            if code:
                how = f"Exited with exit code {code}" if code > 0 else signal.Signals(-code).name
                sys.stderr.write(f"srun: error: {own}: task {rank}: {how}\n")
                if kills:
                    forward(signal.SIGTERM)
        if number and time.time() >= due:
            forward(number)
            number = 0
        time.sleep(_LOOK_SECONDS)
    return max(codes.values())


def _task_input(step: Step) -> bytes:
    """What every task reads. Empty if there is one task, which reads it itself."""
    if step.tasks < 2 or os.isatty(0) or os.path.samestat(os.fstat(0), os.stat(os.devnull)):
        return b""
    return sys.stdin.buffer.read()


def _feed_input(pipe: IO[bytes], given: bytes) -> None:
    with suppress(OSError):
        pipe.write(given)
        pipe.close()


def _label_lines(rank: int, pipe: IO[bytes], width: int) -> None:
    for line in pipe:
        sys.stdout.buffer.write(b"%*d: %s" % (width, rank, line))
        sys.stdout.buffer.flush()


def _start_thread(target: Any, *arguments: Any) -> threading.Thread:
    thread = threading.Thread(target=target, args=arguments, daemon=True)
    thread.start()
    return thread


def become_script(words: Sequence[str], environment: Mapping[str, str], state: Mapping[str, Any]) -> int:
    """Becomes the batch script. If the script asked for a signal before its end, a child process sends it."""
    number, due = due_signal(state["signal"], state["end"], of_batch=True)
    script = os.getpid()
    if number and os.fork() == 0:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        while os.getppid() == script and time.time() < due:
            time.sleep(0.2)
        if os.getppid() == script:
            os.kill(script, number)
        os._exit(0)
    try:
        os.execvpe(words[0], list(words), {**environment, "SLURM_TASK_PID": str(script)})
    except OSError as error:
        raise SlurmError(f"{words[0]}: {error.strerror}") from None


def show_hostnames(words: Sequence[str], _: Mapping[str, str], state: Mapping[str, Any]) -> int:
    """Prints the names of nodes, one a line. It can do nothing else."""
    asked = [word for word in words if not word.startswith("-")]
    if asked[:1] == ["show"] and len(asked) > 1 and asked[1].startswith("hostn"):
        names = expand_hosts(asked[2]) if len(asked) > 2 else state["addresses"]
        sys.stdout.write("".join(name + "\n" for name in names))
        return 0
    raise SlurmError("`{}` does not work here, only `show hostnames` does".format(" ".join(asked[:2])))


def refuse_submission(_: Sequence[str], __: Mapping[str, str], state: Mapping[str, Any]) -> int:
    """Refuses: who starts a run needs access that runs do not have."""
    raise SlurmError(
        "a run cannot submit another one: use `trainyard run`, or add a run to the job {}".format(state["job"])
    )


def load_nothing(_: Sequence[str], __: Mapping[str, str], ___: Mapping[str, Any]) -> int:
    """Loads nothing, and says so."""
    sys.stderr.write("module: there are no modules here, the image has the software\n")
    return 0
