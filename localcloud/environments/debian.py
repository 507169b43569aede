# SPDX-License-Identifier: Apache-2.0
"""Makes an environment that is a small Debian of its own: a C library, a Python, and packages for these.

It is unpacked without root, and needs no namespaces: its own dynamic loader starts its Python and finds its libraries.
The machine's libraries are not used, because they are older or newer.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from catalog.imports import normalized_name
from localcloud.environments import apt
from localcloud.environments.environment_rows import EnvironmentRow
from localcloud.environments.watched_commands import MakeError, MakeProgress
from trainyard.engine.isolated import isolated_python

# The parts of /usr that programs use. The rest is documentation.
_PARTS = ("bin", "lib", "lib64")
# The real interpreter, and a link to the loader. `ps` shows the link's name for every process.
_STARTED, _STARTER = "lib/trainyard/interpreter", "lib/trainyard/python"
_NAMES = ("python", "python3")
_MODULES = "lib/python3/dist-packages"
_ASKS = "Requires-Dist: "
# The loader ignores the machine's library cache and LD_LIBRARY_PATH; its built-in folders come last. `$0` is the path
# with which the process was started: Python finds its modules, or a venv, beside it.
_PROGRAM = """#!/bin/sh
exec {starter} --inhibit-cache --library-path {libraries} --argv0 "$0" {started} "$@"
"""
# Added to the proof of such an environment.
ONLY_OWN_LIBRARIES = """
with open("/proc/self/maps") as maps:
    libraries = {line.split(maxsplit=5)[5].strip() for line in maps if ".so" in line}
strange = sorted(path for path in libraries if not path.startswith(sys.prefix + "/"))
assert libraries and not strange, f"libraries of this machine are used: {strange}"
"""


def fill_debian(row: EnvironmentRow, folder: Path, tell: MakeProgress) -> None:
    """Unpacks the packages, and writes the programs that start its Python."""
    packages = folder / ".unpacked"
    packages.mkdir(parents=True)
    try:
        apt.fetch_debian_packages(row.unpacked, packages, tell, row.suite, row.assumed)
    except MakeError as error:
        raise MakeError(f"{row.name}: {error}\nOr: {own_packages_command(row)}") from None
    for part in _PARTS:
        (packages / "usr" / part).rename(folder / part)
    shutil.rmtree(packages)
    [loader] = [*folder.glob("lib64/ld-linux-*.so.*"), *folder.glob("lib/ld-linux-*.so.*")][:1]
    interpreter = (folder / "bin" / "python3").resolve()
    started, starter = folder / _STARTED, folder / _STARTER
    started.parent.mkdir()
    interpreter.rename(started)
    starter.symlink_to(loader)
    # Some libraries, such as BLAS and LAPACK, are not in the loader's folders: the packages' scripts would make
    # links there, and are not run.
    [common] = {path.parent for path in folder.glob("lib/*/libc.so.6")}
    libraries = [common, *sorted({path.parent for path in common.glob("*/lib*.so.*")}), folder / "lib"]
    text = _PROGRAM.format(
        starter=shlex.quote(str(starter)),
        libraries=shlex.quote(":".join(map(str, libraries))),
        started=shlex.quote(str(started)),
    )
    for program in (folder / "bin" / name for name in (*_NAMES, interpreter.name)):
        program.unlink(missing_ok=True)
        program.write_text(text, "utf-8")
        program.chmod(0o755)
    for script in (folder / "bin").iterdir():
        # Scripts of the packages use this Python, not the machine's.
        if script.is_symlink():
            continue
        first, newline, rest = script.read_bytes().partition(b"\n")
        if first.startswith(b"#!/usr/bin/python3"):
            script.write_bytes(b"#!" + bytes(folder / "bin" / "python") + newline + rest)
    for modules in folder.glob(_MODULES):
        _accept_own_versions(modules)


def find_debian_obstacle(row: EnvironmentRow) -> str:
    """Why this machine cannot unpack it; empty if no obstacle is known."""
    try:
        apt.require_apt(row.suite)
    except MakeError as error:
        return str(error).partition("\n")[0]
    return ""


def own_packages_command(row: EnvironmentRow) -> str:
    """The command that installs an environment's packages for this checkout's interpreter, without Debian."""
    packages = dict.fromkeys(name.partition(".")[0] for name in row.imports)
    return shlex.join(isolated_python("-m", "pip", "install", *packages))


def _accept_own_versions(modules: Path) -> None:
    """Removes unmet requirements from the packages' metadata. pip checks them, also when it installs layers. But these
    packages fit together: Debian has tested its versions, and packages that were left out are not needed."""
    versions = {normalized_name(one.name): one.version for one in metadata.distributions(path=[str(modules)])}
    for file in (*modules.glob("*.dist-info/METADATA"), *modules.glob("*.egg-info/PKG-INFO")):
        head, blank, description = file.read_text("utf-8").partition("\n\n")
        lines = [line for line in head.splitlines() if not _is_unmet_requirement(line, versions)]
        file.write_text("\n".join(lines) + blank + description, "utf-8")


def _is_unmet_requirement(line: str, versions: Mapping[str, str]) -> bool:
    if not line.startswith(_ASKS):
        return False
    asked = Requirement(line.removeprefix(_ASKS))
    if "extra" in str(asked.marker):
        return False
    version = versions.get(normalized_name(asked.name))
    return version is None or not asked.specifier.contains(version, prereleases=True)
