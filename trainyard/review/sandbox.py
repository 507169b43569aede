# SPDX-License-Identifier: Apache-2.0
"""Runs the program under review like a node of the local cloud: with a user, mounts, processes and a network of its
own, and limits. It sees the system, its Python and the folders that it needs, and reaches nobody.

A process between (sandbox_supervisor.py) makes the sandbox, and ends with whoever started it. Where a machine does not
allow sandboxes, the program runs without one, and `Sandboxed.not_isolated` says why.
"""

from __future__ import annotations

import json
import os
import signal
import site
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from localcloud.hosts import limits
from localcloud.hosts.child_process import module_command
from trainyard.engine.isolated import isolated_python

# What the supervisor answers with when it has made the sandbox. It may answer with a reason instead.
READY = b"ready"
ENDING_SECONDS = 10
_SUPERVISOR = "trainyard.review.sandbox_supervisor"
_SYSTEM = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")))
MEMORY_LIMIT, DISK_LIMIT, ERRORS_LIMIT, PROCESS_LIMIT = 4 << 30, 1 << 30, 64 << 20, 256
# Folders of a repository that the program sees empty: states with their passphrases, and git's settings, which may have
# tokens. Of a home it sees no folder whose name begins with a point.
_HIDDEN = (".git", ".trainyard", ".pulumi")


class SandboxError(Exception):
    """The machine allows sandboxes, but that of this program cannot be made. So it is not run."""


@dataclass(frozen=True, slots=True)
class Sandboxed:
    """A started program. `not_isolated`: why it has no sandbox."""

    process: subprocess.Popen[str]
    not_isolated: str = ""

    def end(self) -> None:
        """Ends the program, and all that it has started."""
        if not self.not_isolated:
            # The supervisor then removes the control group, too.
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(ENDING_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


def start_sandbox(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    own: Path,
    shown: Iterable[Path],
    errors: IO[str],
) -> Sandboxed:
    """Starts a program in `folder`. It may write to the folder `own`, and sees the folders `shown`."""
    roots = [path.resolve() for path in shown]
    empty = own / ".hidden"
    empty.mkdir(mode=0o500)
    (own / ".root").mkdir()
    python = tuple(_python_paths())
    places = {root / name for root in roots for name in _HIDDEN}
    if any(Path.home().is_relative_to(root) for root in roots):
        places |= {
            place for place in Path.home().glob(".*") if not any(Path(at).is_relative_to(place) for _, at in python)
        }
    # A link leads to what the sandbox shows anyway, or nowhere.
    hidden = sorted(place for place in places if place.is_dir() and place.resolve() == place)
    spec: dict[str, Any] = {
        "command": list(command),
        "environment": dict(environment),
        "folder": str(folder.resolve()),
        "sandbox": {
            "root": str(own / ".root"), "user": None, "users": 1, "machine": False, "hostname": "review", "ports": None,
            "own": [(str(own), str(own))],
            "shown": [*((str(root), str(root)) for root in roots), *python],
            "folders": [(str(empty), str(path), False) for path in hidden],
            # Its errors, which are a file: the supervisor's own.
            "printed": "/proc/self/fd/2", "groups": {}, "version": 0,
            "limits": {
                **limits.node_limits(MEMORY_LIMIT, DISK_LIMIT, 1, own), "processes": PROCESS_LIMIT,
                "output": ERRORS_LIMIT,
            },
        },
    }  # fmt: skip
    not_isolated = "sandboxes need Linux"
    if sys.platform == "linux":
        process, not_isolated = _start_supervisor(spec, own, errors)
        if not not_isolated:
            return Sandboxed(process)
        # A repository must not be able to do without the sandbox by what it contains.
        nothing_shown = {**spec["sandbox"], "shown": python, "folders": []}
        bare = {**spec, "command": isolated_python("-S", "-c", ""), "folder": str(own), "sandbox": nothing_shown}
        process, reason = _start_supervisor(bare, own, errors)
        process.communicate()
        if not reason:
            raise SandboxError(f"its sandbox cannot be made, though others can: {not_isolated}")
    return Sandboxed(_start_program(command, environment, folder, errors), not_isolated)


def _start_supervisor(spec: Mapping[str, Any], own: Path, errors: IO[str]) -> tuple[subprocess.Popen[str], str]:
    """The process, and why it made no sandbox."""
    reading, writing = os.pipe()
    command = module_command(_SUPERVISOR, json.dumps(spec), str(writing))
    process = _start_program(command, spec["environment"], own, errors, (writing,))
    os.close(writing)
    # Not to its end: the sandbox's first process keeps it open.
    answer = os.read(reading, 2000)
    os.close(reading)
    if answer == READY:
        return process, ""
    process.communicate()
    return process, " ".join(answer.decode(errors="replace").split()) or "the process that supervises it ended"


def _start_program(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, errors: IO[str], files: Sequence[int] = ()
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
        encoding="utf-8", start_new_session=True, pass_fds=files,
    )  # fmt: skip


def _python_paths() -> Iterator[tuple[str, str]]:
    """What this Python consists of, at its own paths: the interpreter, its libraries and its packages."""
    prefixes = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    executables = (os.path.dirname(os.path.realpath(sys.executable)), os.path.dirname(sys.executable))
    pairs: dict[tuple[str, str], None] = {}
    for text in (*prefixes, *executables, site.getusersitepackages(), *sys.path, *libraries):
        path = Path(text)
        # Not what every sandbox has, nor what would show a home.
        if not path.is_absolute() or not path.exists() or Path.home().is_relative_to(path):
            continue
        for source, target in ((path.parent.resolve() / path.name, path), (path.resolve(), path.resolve())):
            if not any(target.is_relative_to(system) for system in _SYSTEM):
                pairs[str(source), os.path.normpath(target)] = None
    yield from pairs
