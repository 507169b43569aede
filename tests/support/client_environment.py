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

import pytest

from trainyard.engine.trusted import open_lock, own_folder, require_own

CLIENTS = Path(__file__).parents[1] / "clients" / "requirements.txt"
NPM_LOCK = ("package-lock.json", "package.json")
_READY = "ready"
# Why an environment cannot be had on this machine; nobody tries again.
_absent: dict[Path, str] = {}


class AbsentError(Exception):
    """A package cannot be fetched: a registry is not reached from here."""


def cache_folder(env: Mapping[str, str]) -> Path:
    return Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainyard"


def environment(lock: Path) -> Path:
    """The `bin` folder of the environment that a lock file describes; made when it is asked for first. Where npm's lock
    is beside it, the folder `node_modules` is beside `bin`. The test is skipped where it cannot be had."""
    if lock in _absent:
        pytest.skip(_absent[lock])
    locks = [lock, *filter(Path.exists, (lock.with_name(name) for name in NPM_LOCK))]
    content = b"".join(file.read_bytes() for file in locks)
    digest = hashlib.sha256(content + sys.version.encode()).hexdigest()[:16]
    folder = cache_folder(os.environ) / f"{lock.stem.replace('requirements', 'clients')}-{digest}"
    own_folder(folder.parents[1], folder.parent.name)
    with open_lock(folder.with_name(f".{folder.name}.lock")) as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # a worker that comes second waits, and finds it made
        if not (folder / _READY).exists():
            try:
                _make_once(folder, lock)
            except AbsentError as error:
                _absent[lock] = str(error)
                pytest.skip(_absent[lock])
        require_own(folder)
    return folder / "bin"


def _make_once(folder: Path, lock: Path) -> None:
    """Where an index cannot be reached, one test finds out: each try takes more than a minute."""
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
    (folder / _READY).touch()  # last, so that one that was cut off is made again


def _add_packages_of_npm(folder: Path, locks: Path) -> None:
    """What npm's lock names, by hashes. No package runs a script while it is installed."""
    for name in NPM_LOCK:
        shutil.copy(locks / name, folder / name)
    path = os.pathsep.join([str(folder / "bin"), os.environ.get("PATH", os.defpath)])
    command = [str(folder / "bin" / "npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise AbsentError(f"{locks / NPM_LOCK[0]} cannot be installed:\n{done.stderr[-2000:]}")
