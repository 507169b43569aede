# SPDX-License-Identifier: Apache-2.0
"""Which commands use the local cloud, which one works on a stack, and which stacks were made on this cloud.

Each command holds a shared lock while it runs; the kernel releases it if the command is killed. A command that wants to
stop the cloud needs the exclusive lock, and keeps it until the cloud has stopped. So no other command starts on a cloud
that is shutting down.
"""

from __future__ import annotations

import configparser
import fcntl
import json
import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from socket import gethostname
from typing import Any

import psutil

from components.platform.calls import Tell
from components.platform.local import LocalStackError
from localcloud.control import Cloud
from schemas.name_suggestions import count_noun
from trainyard.engine.trusted import open_lock


class CloudUse:
    """One command's use of the cloud."""

    def __init__(self, home: Path, tell: Tell) -> None:
        with open_lock(home / "cloud-use.lock") as opened:
            self._lock = os.dup(opened.fileno())
        weakref.finalize(self, os.close, self._lock)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("Another command is stopping the local cloud: waiting until it has.")
            fcntl.flock(self._lock, fcntl.LOCK_SH)

    @contextmanager
    def end(self) -> Iterator[bool]:
        """Whether no other command uses the cloud. If so, no other can start before the end of the block."""
        try:
            # If several commands end at once, each releases its shared lock first, so the last gets the exclusive one.
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
            fcntl.flock(self._lock, fcntl.LOCK_UN)


class StackClaim:
    """The lock of the one command that works on a stack, released when its process ends. Raises LocalStackError if
    another command holds it."""

    def __init__(self, file: Path, stack: str) -> None:
        with open_lock(file) as opened:
            self._lock = os.dup(opened.fileno())
        weakref.finalize(self, os.close, self._lock)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid, _, since = os.pread(self._lock, 100, 0).decode("ascii", "replace").strip().partition(" ")
            raise LocalStackError(
                f"Another command is working on the stack `{stack}`: process {pid}, since {since}.\n"
                f"Run this again when it has ended; to end it: kill -INT {pid}"
            ) from None
        # A command that is refused reads this without a lock: one write of a fixed length is never seen half.
        os.pwrite(self._lock, f"{os.getpid():7} {datetime.now():%Y-%m-%d %H:%M:%S}".encode(), 0)


def refuse_if_locked(folder: Path, stack: str) -> None:
    """Raises LocalStackError while an engine works on the stack: a `pulumi` that a person typed holds no StackClaim."""
    for lock, held in _engine_locks(folder, stack):
        raise LocalStackError(
            f"Another command is working on the stack `{stack}`: process {held.get('pid')} on "
            f"{held.get('hostname')}, since {str(held.get('timestamp'))[:19]}.\nRun this again when it has ended; "
            f"if that machine is gone for good, remove {lock}"
        )


def _is_locked(folder: Path, stack: str) -> bool:
    return any(_engine_locks(folder, stack))


def remove_dead_locks(folder: Path, stack: str) -> None:
    """Removes the locks of engines that were killed. The lock of a running engine stays."""
    for lock, held in _engine_locks(folder, stack):
        if held.get("hostname") == gethostname() and not _is_engine(held.get("pid", 0)):
            lock.unlink(missing_ok=True)


def _engine_locks(folder: Path, stack: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    for lock in folder.glob(f"*/*/{stack}/*.json"):
        try:
            yield lock, json.loads(lock.read_text("utf-8"))
        except (OSError, ValueError):
            continue  # released or being written at this moment


def _is_engine(pid: int) -> bool:
    try:
        process = psutil.Process(pid)
        return "pulumi" in process.name() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def restore_truncated_state(state: Path, locks: Path, tell: Tell) -> None:
    """Restores the backup of a state that the engine left truncated, on a full disk or when it was killed. `up` adopts
    what was made since."""
    stack = state.stem
    # The backend keeps a file's type in a second file. It works without that file, but not with a truncated one.
    attributes = state.with_name(f"{state.name}.attrs")
    if attributes.exists() and not _is_whole(attributes) and not _is_locked(locks, stack):
        attributes.unlink()
    if not state.exists() or _is_whole(state) or _is_locked(locks, stack):
        return
    backup = state.with_name(f"{state.name}.bak")
    if not backup.exists() or not _is_whole(backup):
        raise LocalStackError(
            f"{state} is truncated, as by a full disk, and has no backup.\n"
            f"To start over: trainyard cloud reset, then remove {locks.parents[2]}"
        )
    replace_file(state, backup.read_text("utf-8"))
    tell(f"{state} was truncated, as by a full disk: its backup is used instead.")


def _is_whole(file: Path) -> bool:
    try:
        return isinstance(json.loads(file.read_text("utf-8")), dict)
    except ValueError:
        return False


def replace_file(file: Path, text: str) -> None:
    """Replaces the file atomically: another command may be reading it."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        draft.touch(mode=0o600)
        draft.write_text(text, "utf-8")
    except OSError as problem:
        # The system's error for a full disk does not name the file.
        problem.filename = str(file)
        raise
    draft.replace(file)


def forget_lost_stacks(home: Path, cloud: Cloud, stacks: list[str], forget: Callable[[str], None], tell: Tell) -> None:
    """Forgets `stacks` if their cloud was removed, by `trainyard cloud reset` or with its folder. Notes this cloud's
    identity for next time.

    Their states still list resources that do not exist any more. With such a state `up` would change nothing and report
    success, and `down` would refuse because another stack seems to depend on this one.
    """
    # Each cloud makes the deployer's key at its first start.
    config = configparser.ConfigParser()
    config.read(cloud.config_file, "utf-8")
    note, here = home / "pulumi" / "cloud", config.get("deployer", "fingerprint", fallback="")
    there = note.read_text("utf-8").strip() if note.is_file() else ""
    if there and there != here and stacks:
        tell(
            f"The local cloud of {count_noun(len(stacks), 'stack')} was removed, and their resources with it: "
            f"{', '.join(stacks)}. `up` makes them again."
        )
        for stack in stacks:
            forget(stack)
    if there != here:
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(f"{here}\n", "utf-8")
