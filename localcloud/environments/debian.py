# SPDX-License-Identifier: Apache-2.0
"""Debian packages. Only root installs them, and only if the user wants it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Sequence

from localcloud.environments.work import MakeError, MakeProgress, run_watched

# Another apt may hold the lock, or delete the archives that this one has fetched. So it waits, and retries.
WAIT = ("-o", "DPkg::Lock::Timeout=900")
TRIES = 3
_UNFINISHED = ("half-installed", "unpacked", "half-configured")


def may_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def unfinished(packages: Iterable[str]) -> tuple[str, ...]:
    """The packages whose installation dpkg has begun and not finished. Their files may exist before those of libraries
    that they need."""
    names = list(packages)
    if not names or shutil.which("dpkg-query") is None:
        return ()
    words = ["dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\n", *names]
    listed = subprocess.run(words, capture_output=True, text=True, check=False).stdout.split("\n")
    states = dict(line.split(" ", 1) for line in listed if " " in line)
    return tuple(name for name in names if states.get(name) in _UNFINISHED)


def unfinished_words(packages: Sequence[str]) -> tuple[str, str]:
    """The problem with these packages, and the remedy."""
    reason = f"apt has not finished installing {', '.join(packages)}"
    return reason, "wait until it has ended and try again; if it was interrupted: sudo dpkg --configure -a"


def command_words(packages: Sequence[str]) -> str:
    return shlex.join(["apt-get", "install", "--no-install-recommends", *packages])


def install(packages: Sequence[str], tell: MakeProgress) -> None:
    """Installs packages, and shows progress. Fetches the package lists first, because a new machine has none."""
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
