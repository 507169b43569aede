# SPDX-License-Identifier: Apache-2.0
"""Finds environments that exist, without making any. It reads a few files and starts no process."""

from __future__ import annotations

import glob
import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path

from localcloud.environments import cache, pin
from localcloud.environments.rows import EnvironmentRow, rows, rows_for


@dataclass(frozen=True)
class Environment:
    """An interpreter that has what a row offers; `variables` go to every process started in it."""

    name: str
    interpreter: Path
    says: str
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """PATH for its processes: its own programs first."""
        return os.pathsep.join([str(self.interpreter.parent), os.defpath, "/usr/local/bin"])


@dataclass(frozen=True)
class MissingEnvironment:
    """Why an environment does not exist, and the remedy."""

    name: str
    reason: str
    remedy: str


def find(name: str) -> Environment | MissingEnvironment:
    """The environment of that name as it stands now."""
    row = rows()[name]
    if row.kind == "this" or (row.own and _has_modules_here(row)):
        return (
            _environment(row, Path(sys.executable), "this interpreter")
            if _has_modules_here(row)
            else _missing_modules(row)
        )
    made = locate(row)
    if isinstance(made, MissingEnvironment):
        return made
    folder, _ = made
    stamp = cache.stamp_of(folder)
    if stamp is None:
        reason = cache.why_not_trusted(folder) or "it has not been made on this machine"
        return MissingEnvironment(name, reason, f"trainyard environments make {name}")
    versions = ", ".join(f"{module} {version}" for module, version in stamp.versions.items() if version)
    return _environment(row, folder / "bin" / "python", versions)


def find_for(
    framework: str, strategy: str | None, modules: Set[str], team_own: bool = False
) -> Environment | MissingEnvironment:
    """The first existing environment that can run such a job; otherwise what is missing."""
    able = rows_for(framework, strategy, modules, team_own)
    if not able:
        needs = ", ".join(sorted(modules & frozenset().union(*(row.offers for row in rows().values()))))
        wanted = f"{framework} {strategy}" if strategy else framework
        return MissingEnvironment(framework, f"no local environment offers {wanted} with {needs or 'its modules'}", "")
    candidates = [find(row.name) for row in able]
    return next((one for one in candidates if isinstance(one, Environment)), candidates[0])


def locate(row: EnvironmentRow) -> tuple[Path, Path] | MissingEnvironment:
    """The folder of an environment, made or not, and the interpreter that it is made from."""
    base = rows().get(row.base)
    if base is None:
        interpreter = Path(row.base) if row.base else _interpreter(row.python)
        if interpreter is None or not interpreter.exists():
            wanted = f"Python {row.python}" if row.python else row.base
            return MissingEnvironment(row.name, f"{wanted} is not on this machine", f"install {wanted}")
        return cache.folder_of(row, interpreter, None), interpreter
    under = locate(base)
    if isinstance(under, MissingEnvironment):
        return MissingEnvironment(row.name, under.reason, under.remedy)
    stamp = cache.stamp_of(under[0])
    if stamp is None:
        return MissingEnvironment(
            row.name,
            f"it builds on `{base.name}`, which has not been made on this machine",
            f"trainyard environments make {row.name}",
        )
    return cache.folder_of(row, under[0] / "bin" / "python", stamp), under[0] / "bin" / "python"


def missing_packages(row: EnvironmentRow) -> tuple[str, ...]:
    """The Debian packages that an environment needs and that are not installed."""
    return tuple(name for name, proof in row.packages.items() if not _is_installed(proof))


def _is_installed(proof: str) -> bool:
    return bool(glob.glob(proof)) if proof.startswith("/") else shutil.which(proof) is not None


def _interpreter(version: str) -> Path | None:
    if not version or sys.version.startswith(f"{version}."):
        return Path(sys.executable)
    program = shutil.which(f"python{version}")
    return Path(program) if program else None


def _has_modules_here(row: EnvironmentRow) -> bool:
    return all(importlib.util.find_spec(name.partition(".")[0]) for name in row.imports)


def _missing_modules(row: EnvironmentRow) -> MissingEnvironment:
    return MissingEnvironment(row.name, "this interpreter lacks " + ", ".join(row.imports), "make setup")


def _environment(row: EnvironmentRow, interpreter: Path, says: str) -> Environment:
    library = pin.library()
    return Environment(row.name, interpreter, says, {"TRAINYARD_PIN_LIBRARY": str(library)} if library else {})
