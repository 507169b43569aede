# SPDX-License-Identifier: Apache-2.0
"""The processes that a language host starts: with which Python, and how they end. None outlives the host."""

import os
import queue
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from trainyard.engine.isolated import isolated_python

LEASH = Path(__file__).with_name("leash.py")
POLITE_SECONDS = 3.0
CHUNK = 65536
PLUGIN_DEFAULT = "venv"


class Children:
    """All processes started through here, so that one call can end them."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def start(
        self,
        command: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        stdin: int = subprocess.DEVNULL,
        output: int | IO[bytes] | None = None,
        errors: int | IO[bytes] | None = None,
    ) -> "subprocess.Popen[bytes]":
        """Starts `command` through leash.py, in this process's group: the engine may kill the whole group."""
        leashed = isolated_python("-S", str(LEASH), str(os.getpid()), *command)
        with self._lock:
            if self._closed:
                raise RuntimeError("the language host is shutting down")
            child = subprocess.Popen(leashed, cwd=cwd, env=dict(env), stdin=stdin, stdout=output, stderr=errors)
            self._running.add(child)
        return child

    def forget(self, child: "subprocess.Popen[bytes]") -> None:
        with self._lock:
            self._running.discard(child)

    def output(self, child: "subprocess.Popen[bytes]", context: Any) -> Iterator[tuple[str, bytes]]:
        """Yields what `child` prints until it ends. The child is stopped if the engine cancels the call."""
        chunks: queue.SimpleQueue[tuple[str, bytes]] = queue.SimpleQueue()
        cancelled = threading.Event()
        context.add_callback(cancelled.set)
        context.add_callback(lambda: signal_child(child, signal.SIGINT))
        pipes = {"stdout": child.stdout, "stderr": child.stderr}
        for stream, pipe in pipes.items():
            assert pipe is not None
            threading.Thread(target=_forward_output, args=(stream, pipe, chunks), daemon=True).start()
        try:
            open_streams = set(pipes)
            while open_streams and not cancelled.is_set():
                try:
                    stream, chunk = chunks.get(timeout=1.0)
                except queue.Empty:
                    continue
                if chunk:
                    yield stream, chunk
                else:
                    open_streams.discard(stream)
            if not cancelled.is_set():
                child.wait()
        finally:
            stop_child(child)
            self.forget(child)

    def stop_all(self) -> None:
        """End every child and refuse new ones."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for child in running:
            signal_child(child, signal.SIGINT)
        for child in running:
            stop_child(child)


def signal_child(child: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    if child.poll() is None:
        child.send_signal(number)


def stop_child(child: "subprocess.Popen[bytes]") -> None:
    """Sends SIGTERM to the child, and kills it if it does not end."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        signal_child(child, number)
        try:
            child.wait(POLITE_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        return


def _forward_output(stream: str, pipe: IO[bytes], chunks: "queue.SimpleQueue[tuple[str, bytes]]") -> None:
    with pipe:
        while chunk := os.read(pipe.fileno(), CHUNK):
            chunks.put((stream, chunk))
    chunks.put((stream, b""))


class NoPythonError(Exception):
    """The Python that a project asks for does not exist. The message says what to do."""


@dataclass(frozen=True)
class Interpreter:
    """A Python, and the virtual environment it belongs to, if any."""

    python: str
    virtualenv: Path | None

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """`base` with the changes that `activate` makes, so that programs find their environment's tools."""
        env = dict(base)
        if self.virtualenv:
            env["VIRTUAL_ENV"] = str(self.virtualenv)
            env["PATH"] = os.pathsep.join([str(self.virtualenv / "bin"), env.get("PATH", os.defpath)])
            env.pop("PYTHONHOME", None)
        return env


def wanted_virtualenv(root: Path, options: Mapping[str, object]) -> Path | None:
    """The folder named by the runtime option `virtualenv`, relative to the file that names it."""
    toolchain = options.get("toolchain", "pip")
    if toolchain != "pip":
        raise NoPythonError(
            f"{root}: the runtime option `toolchain: {toolchain}` needs the language host that comes with Pulumi.\n"
            "Install Pulumi itself, or name a virtual environment: `virtualenv: .venv`."
        )
    name = options.get("virtualenv")
    return (root / str(name)) if name else None


def find_interpreter(root: Path, options: Mapping[str, object], plugin: bool = False) -> Interpreter:
    """The Python for a program or plugin. As with Pulumi's own host, a plugin never runs with the Python on PATH."""
    folder = wanted_virtualenv(root, options) or (root / PLUGIN_DEFAULT if plugin else None)
    if folder is None:
        return Interpreter(ambient_python(root), None)
    folder = Path(os.path.normpath(folder))
    python = folder / "bin" / "python"
    if not python.is_file():
        what = "is not a virtual environment" if folder.is_dir() else "doesn't exist"
        raise NoPythonError(
            f"{root}: its runtime option `virtualenv` names {folder}, which {what}.\n"
            f"Make it: `python3 -I -m venv {folder}` and install the project's requirements into it, or `make setup`."
        )
    return Interpreter(str(python), folder)


def ambient_python(root: Path) -> str:
    named = os.environ.get("PULUMI_PYTHON_CMD")
    for name in [named] if named else ["python3", "python"]:
        python = shutil.which(name)
        if python:
            return python
    raise NoPythonError(
        f"{root}: no Python found ({named or 'python3'} is not on PATH).\n"
        "Install Python 3.11 or later, or name a virtual environment in the runtime options."
    )
