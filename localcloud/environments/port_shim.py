# SPDX-License-Identifier: Apache-2.0
"""Compiles the launcher's port shim for this machine. Images contain it; local environments share this one."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

from localcloud.environments.cache import environments_cache, lock_environment, why_not_trusted

# A path, because the local cloud does not import the launcher.
SOURCE = Path(__file__).resolve().parents[2] / "launcher" / "pin" / "pin.c"
COMPILE = ("gcc", "-O2", "-Wall", "-shared", "-fPIC", "-o", "{library}", "{source}", "-ldl")


@cache
def _shim_digest() -> str:
    return hashlib.sha256(SOURCE.read_bytes() + repr((COMPILE, os.uname().machine)).encode()).hexdigest()[:12]


def _shim_path() -> Path | None:
    return environments_cache() / f"pin-{_shim_digest()}" / "libpin.so" if SOURCE.exists() else None


def find_port_shim() -> Path | None:
    """The compiled shim, if it exists and is trusted."""
    path = _shim_path()
    return path if path and path.exists() and not why_not_trusted(path.parent, path) else None


def make_port_shim(say: Callable[[str], None]) -> Path | None:
    """Compiles the shim. None without a compiler: ports are then pinned by other means, or not at all."""
    path = _shim_path()
    if path is None or path.exists() or shutil.which(COMPILE[0]) is None:
        return find_port_shim()
    with lock_environment(path.parent, say):
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            part = path.with_name(".libpin.so")
            part.unlink(missing_ok=True)
            command = [word.format(library=part, source=SOURCE) for word in COMPILE]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                say(f"the port shim does not compile: {done.stderr.strip()[-300:]}")
                return None
            part.rename(path)
    return path
