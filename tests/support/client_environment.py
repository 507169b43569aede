# SPDX-License-Identifier: Apache-2.0
"""Virtual environments of others' programs, apart from ours: they pin what we don't want. One a lock, one a machine."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

from engine.trusted import open_lock, own_folder, require_own

CLIENTS = Path(__file__).parents[1] / "clients" / "requirements.txt"
_READY = "ready"


def cache_folder(env: Mapping[str, str]) -> Path:
    return Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainyard"


def environment(lock: Path) -> Path:
    """The `bin` folder of the environment that a lock file describes; made when it is asked for first."""
    digest = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()[:16]
    folder = cache_folder(os.environ) / f"{lock.stem.replace('requirements', 'clients')}-{digest}"
    own_folder(folder.parents[1], folder.parent.name)
    with open_lock(folder.with_name(f".{folder.name}.lock")) as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # a worker that comes second waits, and finds it made
        if not (folder / _READY).exists():
            _make(folder, lock)
        require_own(folder)
    return folder / "bin"


def _make(folder: Path, lock: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    command = [
        str(folder / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-compile",
    ]
    told = subprocess.run(
        [*command, "--no-deps", "--require-hashes", "-r", str(lock)], capture_output=True, text=True, check=False
    )
    if told.returncode:
        raise RuntimeError(f"{lock} cannot be installed:\n{told.stderr[-2000:]}")
    (folder / _READY).touch()  # last, so that one that was cut off is made again
