# SPDX-License-Identifier: Apache-2.0
"""Finds environments that exist, without making any. It reads a few files and starts no process."""

from __future__ import annotations

import glob
import hashlib
import importlib.util
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path

from catalog.environments import (
    Choice,
    EnvironmentFacts,
    Need,
    choose_environment,
    environment_facts,
    requirement_lines,
    versions_in,
)
from catalog.imports import normalized_name
from localcloud.environments import cache, layout, port_shim
from localcloud.environments.cache import Stamp
from localcloud.environments.environment_rows import EnvironmentRow, environment_rows
from localcloud.environments.layout import Layout

# Separates the environment and the digest of the packages in the name of a layer.
LAYER = "+"
# The requirements file of a layer.
PACKAGES = "packages.txt"
# The folder of a layer with its unpacked packages. trainyard's own files of the layer are beside it.
UNPACKED = "env"
# Raised when layers made by an earlier trainyard must not be used any more.
_RECIPES = 2
# Digests come from names of images and runs, which may be hostile.
_DIGEST = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Environment:
    """An interpreter with the packages of a row. `variables`: those of all processes that are started in it."""

    name: str
    interpreter: Path
    says: str
    layout: Layout
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


def find_environment(name: str) -> Environment | MissingEnvironment:
    """The environment of this name, if it exists. `pytorch+<digest>` is a layer over `pytorch`."""
    base_name, is_layer, digest = name.partition(LAYER)
    row = environment_rows()[base_name]
    if is_layer:
        if not _DIGEST.fullmatch(digest):
            return MissingEnvironment(name, "this is not a valid name of an environment", "trainyard environments")
        base = find_environment(base_name)
        return base if isinstance(base, MissingEnvironment) else _find_layer(name, base, digest)
    if row.kind == "this" or (row.own and _has_modules_here(row)):
        here = Path(sys.executable)
        return (
            _build_environment(row, here, f"this interpreter: {_versions_here(row)}", layout.interpreter_layout(here))
            if _has_modules_here(row)
            else MissingEnvironment(row.name, "this interpreter lacks " + ", ".join(row.imports), "make setup")
        )
    made = locate_environment(row)
    if isinstance(made, MissingEnvironment):
        return made
    folder, made_by = made
    stamp = cache.read_stamp(folder)
    if stamp is None:
        reason = cache.why_unusable(folder) or "it has not been made on this machine"
        return MissingEnvironment(name, reason, f"trainyard environments make {name}")
    versions = ", ".join(f"{module} {version}" for module, version in stamp.versions.items() if version)
    return _build_environment(row, folder / "bin" / "python", versions, _environment_layout(row, folder, made_by))


def _find_layer(name: str, base: Environment, digest: str) -> Environment | MissingEnvironment:
    folder = layer_folder(base, digest)
    stamp, unpacked = cache.read_stamp(folder, UNPACKED), folder / UNPACKED
    if stamp is None:
        reason = cache.why_unusable(folder) or "the packages of its `requirements` are not installed on this machine"
        return MissingEnvironment(name, reason, "trainyard environments make --stack STACK")
    versions = ", ".join(f"{package} {version}" for package, version in stamp.versions.items())
    parts = layout.layout_over(unpacked, base.interpreter, base.layout)
    return Environment(name, unpacked / "bin" / "python", f"{base.says}; {versions}", parts, base.variables)


def layer_folder(base: Environment, digest: str) -> Path:
    """The folder of a layer, whether it exists or not. Each environment has its own layers."""
    below = json.dumps([_RECIPES, str(base.interpreter), base.says, sys.version])
    return cache.environments_cache() / f"{base.name}{LAYER}{digest}-{hashlib.sha256(below.encode()).hexdigest()[:8]}"


def find_environment_for(need: Need, packages: str = "") -> Environment | MissingEnvironment:
    """The environment of a job, or what is missing. `packages`: the digest of the packages that the job adds. If only
    that is known, the requirements come from the layer that was made of them."""
    if packages and not need.requirements:
        need = replace(need, requirements=requirements_of(packages))
    choice = choose_here(need)
    row = choice.fitting[0] if choice.fitting else choice.nearest
    if packages and row and (choice.fitting or not need.requirements):
        base = find_environment(row.name)
        return base if isinstance(base, MissingEnvironment) else find_environment(f"{row.name}{LAYER}{packages}")
    return find_environment(row.name) if row and choice.fitting else _explain_missing_environment(need, choice)


def choose_here(need: Need) -> Choice:
    """The choice by catalog.environments, with the versions on this machine."""
    return choose_environment(need, facts_here())


def facts_here() -> Mapping[str, EnvironmentFacts]:
    """The catalog's rows, with the versions on this machine."""
    return {
        name: replace(facts, provides=versions_of(environment_rows()[name]))
        for name, facts in environment_facts().items()
    }


def requirements_of(packages: str) -> tuple[str, ...]:
    """The lines of the requirements file with this digest, if a layer of this machine was made of it."""
    named = f"*{LAYER}{packages}-*" if _DIGEST.fullmatch(packages) else ""
    for folder in sorted(cache.environments_cache().glob(named)) if named else ():
        if not folder.name.startswith(".") and cache.read_stamp(folder, UNPACKED) is not None:
            return requirement_lines((folder / PACKAGES).read_text("utf-8"))
    return ()


def versions_of(row: EnvironmentRow) -> Mapping[str, str]:
    """The versions that an environment provides. They depend on the release of Debian, or on the interpreter."""
    if row.kind == "this" or (row.own and _has_modules_here(row)):
        names = {name: _version_here(name) for name in row.provides}
        return {name: version for name, version in names.items() if version != "?"}
    made = locate_environment(row)
    stamp = None if isinstance(made, MissingEnvironment) else cache.read_stamp(made[0])
    actual = {normalized_name(name): version for name, version in stamp.versions.items()} if stamp else {}
    return {name: _version_like_row(version, actual.get(name, "")) for name, version in row.provides.items()}


def _version_like_row(listed: str, actual: str) -> str:
    """The version of an environment's package in the row's notation: Debian's 1.13.0 reports 1.13.0a0+gitunknown."""
    from packaging.version import InvalidVersion, Version

    try:
        releases = {Version(one).release: one for one in versions_in(listed)}
        return releases.get(Version(actual).release, actual)
    except InvalidVersion:
        return listed


def _explain_missing_environment(need: Need, choice: Choice) -> MissingEnvironment:
    wanted = f"{need.framework} {need.strategy}" if need.strategy else need.framework
    if choice.nearest is None:
        return MissingEnvironment(need.framework, f"no local environment offers {wanted}", "")
    if choice.conflicts:
        one = choice.conflicts[0]
        reason = f"no local environment offers {wanted} with `{one.requirement}`"
        reason += f": `{choice.nearest.name}` has {one.has}"
        return MissingEnvironment(need.framework, reason, "ask for versions that fit, or leave the package out")
    lacks = ", ".join(choice.lacks)
    reason = f"no local environment offers {wanted} with {lacks}"
    return MissingEnvironment(need.framework, reason, f"name the packages of {lacks} in the job's `requirements:`")


def locate_environment(row: EnvironmentRow) -> tuple[Path, Path] | MissingEnvironment:
    """The folder of an environment, whether it exists or not, and the interpreter that it is made from."""
    if row.kind == "debian":
        folder = cache.environment_folder(row, Path("/"), None)
        return folder, folder / "bin" / "python"
    base = environment_rows().get(row.base)
    if base is None:
        interpreter = Path(row.base) if row.base else _find_interpreter(row.python)
        if interpreter is None or not interpreter.exists():
            wanted = f"Python {row.python}" if row.python else row.base
            return MissingEnvironment(row.name, f"{wanted} is not on this machine", f"install {wanted}")
        return cache.environment_folder(row, interpreter, None), interpreter
    if base.own and _has_modules_here(base):
        below = Stamp(sys.version.split()[0], {"": _versions_here(base)}, {})
        return cache.environment_folder(row, Path(sys.prefix), below), Path(sys.executable)
    under = locate_environment(base)
    if isinstance(under, MissingEnvironment):
        return MissingEnvironment(row.name, under.reason, under.remedy)
    stamp = cache.read_stamp(under[0])
    if stamp is None:
        return MissingEnvironment(
            row.name,
            f"it builds on `{base.name}`, which has not been made on this machine",
            f"trainyard environments make {row.name}",
        )
    return cache.environment_folder(row, under[0] / "bin" / "python", stamp), under[0] / "bin" / "python"


def missing_packages(row: EnvironmentRow) -> tuple[str, ...]:
    """The Debian packages that an environment needs and that are not installed."""
    return tuple(
        name
        for name, proof in row.packages.items()
        if not (glob.glob(proof) if proof.startswith("/") else shutil.which(proof))
    )


def _find_interpreter(version: str) -> Path | None:
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


def base_interpreters() -> Iterator[Path]:
    """The interpreters of this machine from which environments are made: their paths as written, and resolved."""
    named = [Path(row.base) for row in environment_rows().values() if os.path.isabs(row.base)]
    named += filter(None, (_find_interpreter(row.python) for row in environment_rows().values() if row.python))
    for program in dict.fromkeys([Path(sys.executable), *named]):
        yield from (program, program.resolve())


def _environment_layout(row: EnvironmentRow, folder: Path, made_by: Path) -> Layout:
    """The layout of an environment of the cache, from how it was made."""
    if row.kind == "debian":
        return layout.unpacked_debian_layout(folder)
    base = environment_rows().get(row.base)
    if base is None:
        # It was made with the resolved interpreter, so it does not depend on a virtual environment in between.
        return layout.layout_over(
            folder, made_by, layout.interpreter_layout(made_by.resolve()), sees_system=bool(row.base)
        )
    under = locate_environment(base)
    if made_by == Path(sys.executable) or isinstance(under, MissingEnvironment):
        return layout.layout_over(folder, made_by, layout.interpreter_layout(made_by))
    return layout.layout_over(folder, made_by, _environment_layout(base, *under))


def _build_environment(row: EnvironmentRow, interpreter: Path, says: str, parts: Layout) -> Environment:
    library = port_shim.find_port_shim()
    pinned = {"TRAINYARD_PIN_LIBRARY": str(library)} if library else {}
    own = {**pinned, **row.library_path(interpreter.parent.parent), **row.variables}
    return Environment(row.name, interpreter, says, parts, own)
