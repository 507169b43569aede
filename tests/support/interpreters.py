# SPDX-License-Identifier: Apache-2.0
"""Other versions of Python. A test for a version that is not on this machine is not collected."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

_HOMES = Path.home() / ".pyenv/versions"
_SHOWS = "import ssl, sys; print('%d.%d' % sys.version_info[:2])"


def pythons(*versions: str) -> list[Path]:
    """The interpreters of these versions that run on this machine and have TLS."""
    return [python for version in versions for python in _found(version)[:1]]


def _found(version: str) -> list[Path]:
    named = shutil.which(f"python{version}")
    places = [*sorted(_HOMES.glob(f"{version}.*/bin/python3")), *([Path(named)] if named else [])]
    return [place for place in places if _version(place) == version]


def _version(python: Path) -> str:
    try:
        done = subprocess.run([str(python), "-c", _SHOWS], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return ""
    return done.stdout.strip()
