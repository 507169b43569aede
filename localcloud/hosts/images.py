# SPDX-License-Identifier: Apache-2.0
"""Which local environment stands in for a container image, and what its processes find there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from localcloud.environments.find import MissingEnvironment, find
from localcloud.environments.rows import rows
from localcloud.hosts import inside

DEFAULT_ENVIRONMENT = "own"
_PASSED_ON = ("LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "LD_LIBRARY_PATH")
# All nodes share this machine's processors: a thread that spins while it waits takes them from the one it waits for.
_SHARING = {"OMP_WAIT_POLICY": "PASSIVE"}


@dataclass(frozen=True)
class LocalEnvironment:
    """Where a node's programs and modules are found."""

    path: str
    interpreter: Path
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class NodePaths:
    """Where a node's processes see what is theirs; without a place of its own, where it really lies."""

    home: str = inside.HOME
    temporary: str = inside.TEMPORARY
    given: str = inside.GIVEN
    project: str = inside.PROJECT


def environment_for(name: str) -> LocalEnvironment | MissingEnvironment:
    """By the name that was recorded with the image; this checkout's interpreter where none was."""
    found = find(name if name in rows() else DEFAULT_ENVIRONMENT)
    if isinstance(found, MissingEnvironment):
        return found
    return LocalEnvironment(found.path, found.interpreter, found.variables)


def base_variables(environment: LocalEnvironment, seen: NodePaths) -> Mapping[str, str]:
    """What a node's process finds before anything of the job: nothing else of the cloud's own environment leaks in."""
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {
        "LANG": "C.UTF-8",
        **passed,
        "PATH": environment.path,
        "PYTHONPATH": seen.project,
        "PYTHONUNBUFFERED": "1",
        "HOME": seen.home,
        "TMPDIR": seen.temporary,
        "USER": inside.USER,
        **_SHARING,
        **environment.variables,
    }
