# SPDX-License-Identifier: Apache-2.0
"""Finds environments that exist, without making any. It reads a few files and starts no process."""

from __future__ import annotations

import glob
import hashlib
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from localcloud.environments import cache, pin
from localcloud.environments.rows import EnvironmentRow, rows, rows_for

# In the name of a layer: between the environment below it and the digest of its packages.
LAYER = "+"


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
    """The environment of that name as it stands now. `pytorch+<digest>` is a layer over `pytorch`."""
    base_name, is_layer, digest = name.partition(LAYER)
    row = rows()[base_name]
    if is_layer:
        base = find(base_name)
        return base if isinstance(base, MissingEnvironment) else _find_layer(name, base, digest)
    if row.kind == "this" or (row.own and _has_modules_here(row)):
        return (
            _environment(row, Path(sys.executable), f"this interpreter: {_versions_here(row)}")
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


def _find_layer(name: str, base: Environment, digest: str) -> Environment | MissingEnvironment:
    folder = layer_folder(base, digest)
    stamp = cache.stamp_of(folder)
    if stamp is None:
        reason = cache.why_not_trusted(folder) or "the packages of its `requirements` are not installed on this machine"
        return MissingEnvironment(name, reason, "trainyard environments make --stack STACK")
    versions = ", ".join(f"{package} {version}" for package, version in stamp.versions.items())
    return Environment(name, folder / "bin" / "python", f"{base.says}; {versions}", base.variables)


def layer_folder(base: Environment, digest: str) -> Path:
    """The folder of a layer, made or not. Another environment below it is another layer."""
    below = json.dumps([cache.RECIPES, str(base.interpreter), base.says, sys.version])
    return cache.cache_folder() / f"{base.name}{LAYER}{digest}-{hashlib.sha256(below.encode()).hexdigest()[:8]}"


def find_for(
    framework: str, strategy: str | None, modules: Set[str], team_own: bool = False, packages: str = ""
) -> Environment | MissingEnvironment:
    """The environment of a job: the one place that decides. `modules` are the imports of its code, `packages` the
    digest of the packages that it asks for besides. Otherwise what is missing."""
    base = find_base(framework, strategy, modules, team_own, packages)
    return base if isinstance(base, MissingEnvironment) or not packages else find(f"{base.name}{LAYER}{packages}")


def find_base(
    framework: str, strategy: str | None, modules: Set[str], team_own: bool, packages: str
) -> Environment | MissingEnvironment:
    """The first existing environment that has a job's framework. Its own packages may bring what that lacks."""
    able = rows_for(framework, strategy, modules, team_own, lenient=bool(packages))
    if not able:
        return _nothing_offers(framework, strategy, modules, team_own)
    candidates = [find(row.name) for row in able]
    return next((one for one in candidates if isinstance(one, Environment)), candidates[0])


def _nothing_offers(framework: str, strategy: str | None, modules: Set[str], team_own: bool) -> MissingEnvironment:
    wanted = f"{framework} {strategy}" if strategy else framework
    nearest = next(iter(rows_for(framework, strategy, modules, team_own, lenient=True)), None)
    if nearest is None:
        return MissingEnvironment(framework, f"no local environment offers {wanted}", "")
    offered = frozenset().union(*(row.offers for row in rows().values()))
    lacks = ", ".join(sorted((modules & offered) - nearest.offers))
    reason = f"no local environment offers {wanted} with {lacks}"
    return MissingEnvironment(framework, reason, f"name the packages of {lacks} in the job's `requirements:`")


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


def _versions_here(row: EnvironmentRow) -> str:
    names = dict.fromkeys(module.partition(".")[0] for module in row.imports)
    return ", ".join(f"{name} {_version_here(name)}" for name in names)


def _version_here(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "?"


def _missing_modules(row: EnvironmentRow) -> MissingEnvironment:
    return MissingEnvironment(row.name, "this interpreter lacks " + ", ".join(row.imports), "make setup")


def _environment(row: EnvironmentRow, interpreter: Path, says: str) -> Environment:
    library = pin.library()
    return Environment(row.name, interpreter, says, {"TRAINYARD_PIN_LIBRARY": str(library)} if library else {})
