# SPDX-License-Identifier: Apache-2.0
"""Separate virtual environments for clients of other projects, which pin packages in versions that we do not want.
There is one for each lock file and machine."""

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

import pytest

from trainyard.engine.trusted import open_lock, own_folder, require_own

CLIENTS = Path(__file__).parents[1] / "clients" / "requirements.txt"
NPM_LOCK = ("package-lock.json", "package.json")
_READY = "ready"
# Why an environment cannot be made on this machine. It is not tried again.
_absent: dict[Path, str] = {}


class AbsentError(Exception):
    """A package cannot be fetched, because the registry cannot be reached."""


def cache_folder(env: Mapping[str, str]) -> Path:
    return Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainyard"


def environment(lock: Path) -> Path:
    """The `bin` folder of the environment that a lock file describes. It is made on first use. If an npm lock is beside
    the lock file, `node_modules` is beside `bin`. The test is skipped if the environment cannot be made."""
    if lock in _absent:
        pytest.skip(_absent[lock])
    locks = [lock, *filter(Path.exists, (lock.with_name(name) for name in NPM_LOCK))]
    content = b"".join(file.read_bytes() for file in locks)
    digest = hashlib.sha256(content + sys.version.encode()).hexdigest()[:16]
    folder = cache_folder(os.environ) / f"{lock.stem.replace('requirements', 'clients')}-{digest}"
    own_folder(folder.parents[1], folder.parent.name)
    with open_lock(folder.with_name(f".{folder.name}.lock")) as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # a second worker waits here until the first has made it
        if not (folder / _READY).exists():
            try:
                _make_once(folder, lock)
            except AbsentError as error:
                _absent[lock] = str(error)
                pytest.skip(_absent[lock])
        require_own(folder)
    return folder / "bin"


def _make_once(folder: Path, lock: Path) -> None:
    """If the index cannot be reached, only one test waits for that: each attempt takes more than a minute."""
    this_run, failed = os.environ.get("PYTEST_XDIST_TESTRUNUID", ""), folder.with_name(f".{folder.name}.failed")
    run, _, why = failed.read_text().partition("\n") if failed.exists() else ("", "", "")
    if this_run and run == this_run:
        raise RuntimeError(why)
    try:
        _make(folder, lock)
    except RuntimeError as error:
        failed.write_text(f"{this_run}\n{error}")
        raise
    failed.unlink(missing_ok=True)


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
        raise AbsentError(f"{lock} cannot be installed:\n{told.stderr[-2000:]}")
    if lock.with_name(NPM_LOCK[0]).exists():
        _add_packages_of_npm(folder, lock.parent)
    (folder / _READY).touch()  # last, so that an environment that was interrupted is made again


def _add_packages_of_npm(folder: Path, locks: Path) -> None:
    """Installs the packages of npm's lock and checks their hashes. No package runs a script during the installation."""
    for name in NPM_LOCK:
        shutil.copy(locks / name, folder / name)
    path = os.pathsep.join([str(folder / "bin"), os.environ.get("PATH", os.defpath)])
    command = [str(folder / "bin" / "npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise AbsentError(f"{locks / NPM_LOCK[0]} cannot be installed:\n{done.stderr[-2000:]}")
