# SPDX-License-Identifier: Apache-2.0
"""Which local environment stands in for a container image, and the variables that its processes get."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from localcloud.environments.find import LAYER, MissingEnvironment, find
from localcloud.environments.layout import Layout
from localcloud.environments.rows import rows
from localcloud.hosts import inside

DEFAULT_ENVIRONMENT = "own"
_PASSED_ON = ("LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "LD_LIBRARY_PATH")
# All nodes share this machine's processors. A thread that spins while it waits would slow down the one it waits for.
_SHARING = {"OMP_WAIT_POLICY": "PASSIVE"}


@dataclass(frozen=True)
class LocalEnvironment:
    """Where a node's programs and modules are found."""

    path: str
    interpreter: Path
    layout: Layout
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class NodePaths:
    """Where a node's processes see their files. A node without namespaces sees the real paths."""

    home: str = inside.HOME
    temporary: str = inside.TEMPORARY
    given: str = inside.GIVEN
    project: str = inside.PROJECT


def environment_for(name: str) -> LocalEnvironment | MissingEnvironment:
    """The environment that was chosen for the run. Without one: this checkout's interpreter."""
    environment = find(name if name.partition(LAYER)[0] in rows() else DEFAULT_ENVIRONMENT)
    if isinstance(environment, MissingEnvironment):
        return environment
    variables = {**environment.variables, "TRAINYARD_ENVIRONMENT": environment.name.partition(LAYER)[0]}
    return LocalEnvironment(environment.path, environment.interpreter, environment.layout, variables)


def base_variables(environment: LocalEnvironment, seen: NodePaths, programs: str = "") -> Mapping[str, str]:
    """The variables of a node's process before those of the job. The cloud's own environment does not leak in.
    `programs` is a folder that comes before the environment's own."""
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {
        "LANG": "C.UTF-8",
        **passed,
        "PATH": os.pathsep.join(filter(None, (programs, environment.path))),
        "PYTHONUNBUFFERED": "1",
        "HOME": seen.home,
        "TMPDIR": seen.temporary,
        "USER": inside.USER,
        **_SHARING,
        **environment.variables,
    }
