# SPDX-License-Identifier: Apache-2.0
"""A local cloud for one rehearsal. It is made and removed with the rehearsal, apart from the person's own cloud."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from localcloud import control, processes
from trainyard.engine.trusted import private_folder
from trainyard.local.place import default_home

OWNER = "owner.json"
_FOLDER = "rehearsals"


@contextmanager
def temporary_home(stack: str, keep: bool = False) -> Iterator[Path]:
    """A folder for all that a rehearsal makes. Whatever ends the rehearsal ends its cloud and removes the folder."""
    root = private_folder(default_home().resolve() / _FOLDER)
    sweep(root)
    home = Path(tempfile.mkdtemp(prefix=f"{stack[:40]}-", dir=root))
    me = {"pid": os.getpid(), "started": processes.start_time(os.getpid())}
    (home / OWNER).write_text(json.dumps(me))
    before = signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        yield home
    finally:
        signal.signal(signal.SIGTERM, before)
        if keep:
            (home / OWNER).unlink()
        else:
            _remove(home)


def sweep(root: Path) -> None:
    """Remove what killed rehearsals have left: those whose process is gone."""
    for home in root.iterdir():
        try:
            owner = json.loads((home / OWNER).read_text())
            alive = processes.is_same(int(owner["pid"]), str(owner["started"]))
        except (OSError, ValueError, KeyError):
            continue  # kept on purpose, or just being made
        if not alive:
            _remove(home)


def _remove(home: Path) -> None:
    """Stop the cloud and remove the folder. Ignores signals: a second Ctrl-C would leave a cloud behind."""
    held = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with suppress(OSError):
            control.stop(home / "cloud")
        shutil.rmtree(home, ignore_errors=True)
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)


def _as_interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
