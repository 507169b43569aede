# SPDX-License-Identifier: Apache-2.0
"""Starts, finds and stops the local cloud of a folder, for `trainyard`, the tests and the plugin."""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from localcloud import files
from localcloud.files import VARIABLE
from trainyard.engine.isolated import isolated_python, why_committed
from trainyard.engine.tools import tools_home
from trainyard.engine.trusted import open_lock, private_folder

# The timeout of a start, which takes half a second on a quiet machine and longer on a busy one.
READY_SECONDS = 90.0
STOP_SECONDS = 60.0
# The exit code of a server whose folder already has one.
ALREADY_RUNNING = 3
_ANSWER_SECONDS = 15.0
MARKER_PATH = "/.trainyard"
_SERVER = "localcloud.serve"
_POLL_SECONDS = 0.02
_OTHERS_START_SECONDS = 20.0
_ROOM_FOR_WORDS = 4096


class CloudError(Exception):
    """A problem with the local cloud itself. The text is for its user."""


@dataclass(frozen=True)
class Cloud:
    """A running local cloud. `compartment` is meant for stacks; `tenancy` is the root compartment."""

    home: Path
    pid: int
    endpoint: str
    tenancy: str
    compartment: str
    namespace: str
    region: str

    @property
    def config_file(self) -> Path:
        """The credentials file of OCI's clients, with the profiles `deployer` (also DEFAULT) and `user`."""
        return self.home / "config"

    @property
    def env(self) -> Mapping[str, str]:
        """The environment variables that lead every client to this cloud."""
        return self.env_for("deployer")

    def env_of_caller(self) -> Mapping[str, str]:
        """The same variables, for the profile of the caller. A client's variable for the profile counts if the
        environment also names this cloud's credentials file; otherwise the profile is the deployer's."""
        from localcloud.clients import platform_clients

        every = (clients.variables(self, clients.profile_of_caller(self, os.environ) or "deployer")
                 for clients in platform_clients())  # fmt: skip
        return self._variables(every)

    def env_for(self, profile: str) -> Mapping[str, str]:
        from localcloud.clients import platform_clients

        return self._variables(clients.variables(self, profile) for clients in platform_clients())

    def _variables(self, every: Iterable[Mapping[str, str]]) -> Mapping[str, str]:
        return {"TRAINYARD_REGISTRY": self.endpoint, **{name: value for own in every for name, value in own.items()}}


def default_home() -> Path:
    """The folder of the cloud that every command uses, wherever it is called from: `cloud` in this checkout's
    `.trainyard`, or where TRAINYARD_HOME moves that."""
    return tools_home(os.environ).resolve() / "cloud"


def running_homes() -> Iterator[Path]:
    """The folders of the clouds that this account runs on this machine, as their processes name them."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().decode(errors="surrogateescape").split("\0")
            if words[2:4] == ["-m", _SERVER] and process.stat().st_uid == os.getuid():
                yield Path(words[4])


def start_cloud(home: Path, port: int = 0, timeout: float = READY_SECONDS, isolation: str = "") -> Cloud:
    """The cloud of this folder. It is started if it does not run, and concurrent callers all get the same one.
    `isolation` applies only to a cloud that this call starts; by default its environment decides."""
    home = home.resolve()
    if reason := why_committed(home):
        raise CloudError(reason)
    private_folder(home)
    with _lock_home(home):
        return _wait_for_answer(home, timeout) or _launch_server(home, port, timeout, isolation)


def find_running_cloud(home: Path) -> Cloud | None:
    """The cloud of this folder if it runs and answers."""
    record = _read_server_record(home)
    if record is None or not _is_alive(record):
        return None
    try:
        connection = http.client.HTTPConnection("127.0.0.1", record["port"], timeout=_ANSWER_SECONDS)
        try:
            connection.request("GET", MARKER_PATH)
            marker: dict[str, str] = json.loads(connection.getresponse().read())
        finally:
            connection.close()
    except (OSError, ValueError, http.client.HTTPException):
        return None
    return Cloud(
        home.resolve(), record["pid"], f"http://127.0.0.1:{record['port']}", marker["tenancy"], marker["compartment"],
        marker["namespace"], marker["region"],
    )  # fmt: skip


def why_cloud_is_silent(home: Path, seconds: float = 0.0) -> str:
    """The message about a cloud that runs, but did not answer for so many seconds. Empty if none runs."""
    record = _read_server_record(home)
    if record is None or not _is_alive(record):
        return ""
    return (
        f"The local cloud in {home} (pid {record['pid']}) runs, but did not answer for "
        f"{seconds or _ANSWER_SECONDS:.0f} s: it is busy, or suspended, or runs in another network namespace.\n"
        "Try again in a while, or stop it with: trainyard cloud stop"
    )


def stop_cloud(home: Path, timeout: float = STOP_SECONDS) -> bool:
    """Stops the folder's cloud and its runs; False if none ran. It never signals a process that took over the pid."""
    if not home.is_dir():
        return False
    with _lock_home(home):
        record = _read_server_record(home)
        if record is None or not _is_alive(record):
            return False
        os.kill(record["pid"], signal.SIGTERM)
        if not _wait_until(lambda: not _is_alive(record), timeout):
            os.kill(record["pid"], signal.SIGKILL)
            _wait_until(lambda: not _is_alive(record), timeout)
        _exit_code(record["pid"])
        (home / "server.json").unlink(missing_ok=True)
        return True


def reset_cloud(home: Path) -> None:
    """Stops the cloud and deletes its folder."""
    stop_cloud(home)
    if home.exists() and not ((home / "state.sqlite3").exists() or not any(home.iterdir())):
        raise CloudError(f"{home} does not look like the folder of a local cloud; nothing was removed")
    shutil.rmtree(home, ignore_errors=True)


def _wait_for_answer(home: Path, timeout: float) -> Cloud | None:
    """The cloud of this folder if its process lives. Waits for a busy one, because a second one must not start."""
    deadline = time.monotonic() + timeout
    while (cloud := find_running_cloud(home)) is None and (silent := why_cloud_is_silent(home, timeout)):
        if time.monotonic() > deadline:
            raise CloudError(silent)
        time.sleep(_POLL_SECONDS)
    return cloud


def _launch_server(home: Path, port: int, timeout: float, isolation: str) -> Cloud:
    # Ctrl-C is blocked until the new server's pid is known here.
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    pid = None
    try:
        begins, pid = _spawn_server(home, port, {VARIABLE: isolation} if isolation else {})
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        outcome = _wait_until_ready(home, pid, timeout)
    except BaseException:
        # After Ctrl-C, the started process must not be left behind.
        if pid:
            _kill_and_wait(pid, timeout)
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
    if isinstance(outcome, Cloud):
        return outcome
    if outcome is None:
        _kill_and_wait(pid, timeout)
    lines = (home / "server.log").read_bytes()[begins:].decode(errors="replace").strip().splitlines()
    why = lines[-1] if lines else _explain_silence(home, outcome, timeout)
    raise CloudError(f"The local cloud in {home} did not start: {why}\nIts log: {home / 'server.log'}")


def _wait_until_ready(home: Path, pid: int, timeout: float) -> Cloud | int | None:
    """The cloud, or the exit code of its process, or None if it is not ready in time."""
    deadline = time.monotonic() + timeout
    code: int | None = None
    while code in (None, ALREADY_RUNNING) and time.monotonic() < deadline:
        if cloud := find_running_cloud(home):
            return cloud
        if code is None and (code := _exit_code(pid)) == ALREADY_RUNNING:
            # Another caller started that server and ended before it was ready.
            deadline = min(deadline, time.monotonic() + _OTHERS_START_SECONDS)
        time.sleep(_POLL_SECONDS)
    return code


def _kill_and_wait(pid: int, timeout: float) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    _wait_until(lambda: _exit_code(pid) is not None, timeout)


def _explain_silence(home: Path, code: int | None, timeout: float) -> str:
    if code is None:
        return f"it was not ready within {timeout:.0f} seconds"
    # On a full disk the log may lack the message.
    full = shutil.disk_usage(home).free < _ROOM_FOR_WORDS
    return "there is no space left on its disk" if full else f"its process ended with {code} and printed nothing"


def _spawn_server(home: Path, port: int = 0, variables: Mapping[str, str] = MappingProxyType({})) -> tuple[int, int]:
    """Starts a server. Returns the position in the log where its part begins, and its pid. Not by Popen, because the
    server outlives the caller."""
    project = str(Path(__file__).resolve().parents[1])
    log = home / "server.log"
    begins = log.stat().st_size if log.exists() else 0
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    pid = os.posix_spawn(
        sys.executable,
        isolated_python("-m", _SERVER, str(home), str(port), packages_of_user=True),
        {**os.environ, "PYTHONPATH": project, **variables},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), append, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        # The nodes must not inherit the signals that the caller ignores (nohup, a script's `&`).
        setsigdef=(signal.SIGINT, signal.SIGHUP),
        setsigmask=(),
    )
    return begins, pid


def _exit_code(pid: int) -> int | None:
    """The exit code, or None while the process lives. Reaps it if it is a child of this process."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None if files.process_start_time(pid) else 0
    return os.waitstatus_to_exitcode(status) if ended else None


def _read_server_record(home: Path) -> dict[str, Any] | None:
    try:
        record = json.loads((home / "server.json").read_text())
        return {name: record[name] for name in ("pid", "started", "port")}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_alive(record: Mapping[str, Any] | None) -> bool:
    return record is not None and files.is_same_process(record["pid"], record["started"])


def _wait_until(condition: Any, timeout: float) -> bool:
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


@contextmanager
def _lock_home(home: Path) -> Iterator[None]:
    # The lock is beside the folder, so that a reset does not delete the lock of another start.
    with open_lock(home.with_name(f"{home.name}.lock")) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
