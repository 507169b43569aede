# SPDX-License-Identifier: Apache-2.0
"""Debian packages. Only root installs them, and only if the user wants it."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence

from localcloud.environments.work import MakeError, MakeProgress, run_watched

# Another apt may hold the lock, or clear the archives that this one has fetched: wait, and try again.
WAIT = ("-o", "DPkg::Lock::Timeout=900")
TRIES = 3


def may_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def command_words(packages: Sequence[str]) -> str:
    return shlex.join(["apt-get", "install", "--no-install-recommends", *packages])


def install(packages: Sequence[str], tell: MakeProgress) -> None:
    """Installs packages, with progress. It fetches the package lists first: a fresh machine has none."""
    tell.say(f"installing Debian packages: {', '.join(packages)}")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", *WAIT, "install", "-y", "-q", "--no-install-recommends", *packages]
    for attempt in range(1, TRIES + 1):
        try:
            run_watched(["apt-get", *WAIT, "update", "-q"], tell, "apt-get update", quiet)
            return run_watched(command, tell, "apt-get install", quiet)
        except MakeError:
            if attempt == TRIES:
                raise
            tell.say("apt-get failed: trying again")
    return None
