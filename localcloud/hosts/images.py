# SPDX-License-Identifier: Apache-2.0
"""Which local environment stands in for a container image: this checkout's interpreter, with the project importable."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# What trainyard's own images start; an image pushed with its own entrypoint says otherwise.
DEFAULT_ENTRYPOINT = ("python", "-m", "launcher")
_PASSED_ON = ("LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "LD_LIBRARY_PATH")


@dataclass(frozen=True)
class LocalEnvironment:
    """Where a node's programs and modules are found."""

    path: str
    python_path: str


def environment_for(image: str) -> LocalEnvironment:
    """One environment serves every image so far; a map by image name goes here."""
    project = Path(__file__).resolve().parents[2]
    return LocalEnvironment(
        f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}{os.pathsep}/usr/local/bin", str(project)
    )


def base_variables(environment: LocalEnvironment, home: Path) -> Mapping[str, str]:
    """What a node's process finds before anything of the job: nothing else of the cloud's own environment leaks in."""
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {
        "LANG": "C.UTF-8",
        **passed,
        "PATH": environment.path,
        "PYTHONPATH": environment.python_path,
        "PYTHONUNBUFFERED": "1",
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "USER": "datascience",
    }
