# SPDX-License-Identifier: Apache-2.0
"""Makes layers: a job's own packages over the environment of its framework, which is not installed again.

The packages are not trusted. Making a layer runs no code of theirs: only wheels are unpacked, unless the team names a
package to build, and only nodes start the layer's interpreter. The packages are unpacked into a folder of their own,
after each wheel was judged (wheels.py).
The files that trainyard reads later are beside it, where no package can replace them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from catalog.environments import versions_in
from catalog.imports import requested_package_names
from localcloud.environments import cache, port_shim
from localcloud.environments.cache import Stamp
from localcloud.environments.downloads import (
    Download,
    describe_download_size,
    downloads_that_need_gpu,
    gpu_only_downloads,
    planned_downloads,
)
from localcloud.environments.environment_rows import environment_rows
from localcloud.environments.find import (
    LAYER,
    PACKAGES,
    UNPACKED,
    Environment,
    MissingEnvironment,
    find_environment,
    layer_folder,
    versions_of,
)
from localcloud.environments.layout import SETTINGS
from localcloud.environments.make import add_base_modules
from localcloud.environments.watched_commands import DiskGuard, MakeError, MakeProgress, run_pip, run_watched
from localcloud.environments.wheels import require_confined_wheel
from trainyard.engine.isolated import isolated_python

LOCK = "installed.txt"
_ANYWAY = "TRAINYARD_GPU_PACKAGES"
# A package may contain metadata of other packages, with any text. Only valid names and versions are accepted.
_NAMES, _VERSIONS = re.compile(r"[A-Za-z0-9._-]+"), re.compile(r"[A-Za-z0-9.!+_-]+")
_FIT = "Ask for versions that fit, or leave the package out: images keep their framework's packages too."
_NO_NETWORK = ("NewConnectionError", "Max retries exceeded", "ProxyError", "Network is unreachable", "NameResolution")
_DEPENDS = re.compile(r"(\S+) \S+ depends on ([A-Za-z0-9._-]+)")
_REQUESTED = "The user requested"
# Top-level folders that many packages install, and that no training imports.
_IGNORED_FOLDERS = frozenset({"tests", "test", "examples", "docs", "benchmarks", "bin", "share", "__pycache__"})
# Lists all packages that the framework's modules need. Runs in the base environment, which has only trusted packages.
_CLOSURE = """
import json, re, sys
from importlib import metadata

def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()

installed = {}
for one in metadata.distributions():
    if one.metadata and one.metadata["Name"]:
        installed.setdefault(normal(one.metadata["Name"]), one)
of_module = metadata.packages_distributions()
tops = sys.argv[1].split(",")
waiting = [normal(name) for top in tops for name in of_module.get(top, [top])]
needed = {}
while waiting:
    name = waiting.pop()
    if name in needed or name not in installed:
        continue
    one = installed[name]
    needed[name] = {"version": one.version, "modules": sorted(
        module for module, names in of_module.items() if name in map(normal, names))}
    for text in one.requires or ():
        if "extra ==" not in text and "extra==" not in text:
            waiting.append(normal(re.match(r"[A-Za-z0-9._-]+", text).group()))
print(json.dumps(needed))
"""


@dataclass(frozen=True)
class BasePackage:
    """A package of the framework, which no layer may replace."""

    version: str
    modules: tuple[str, ...]


@dataclass(frozen=True)
class LayerRequirements:
    """The packages of a layer: the text for pip, and the digest in the layer's name. `file`: the team's own file.
    `places`: for each line of the text, its place in the team's files; empty for a line of ours."""

    text: str
    digest: str
    file: str
    places: Sequence[str] = ()


def make_layer(base: Environment, wanted: LayerRequirements, tell: MakeProgress) -> Environment:
    """Makes the layer of these packages over an environment, unless it exists."""
    port_shim.make_port_shim(tell.say)
    name = f"{base.name}{LAYER}{wanted.digest}"
    folder = layer_folder(base, wanted.digest)
    with cache.lock_environment(folder, tell.say):
        if cache.read_stamp(folder, UNPACKED) is None:
            tell.say(f"installing the packages of {wanted.file} over the environment `{base.name}`, once per machine")
            cache.clear_folder(folder)
            try:
                _fill_layer(base, folder, wanted, tell)
            except BaseException:
                cache.clear_folder(folder)
                raise
            tell.say(f"the packages of {wanted.file} are ready")
    made = find_environment(name)
    if isinstance(made, MissingEnvironment):
        raise MakeError(f"{name}: made, but {made.reason}")
    return made


def usable_layers() -> Mapping[str, Environment]:
    """The layers of this machine that may be used now, by name."""
    folders = sorted(cache.environments_cache().glob(f"*{LAYER}*-*"))
    named = dict.fromkeys(folder.name.rpartition("-")[0] for folder in folders if not folder.name.startswith("."))
    every = {name: find_environment(name) for name in named if name.partition(LAYER)[0] in environment_rows()}
    return {name: environment for name, environment in every.items() if isinstance(environment, Environment)}


def _fill_layer(base: Environment, folder: Path, wanted: LayerRequirements, tell: MakeProgress) -> None:
    row = environment_rows()[base.name]
    modules = ",".join(sorted({name.partition(".")[0] for name in row.imports} | row.offers))
    done = subprocess.run(
        isolated_python("-c", _CLOSURE, modules, python=base.interpreter), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise MakeError(f"{base.name}: its packages cannot be listed:\n{done.stderr.strip()[-1000:]}")
    listed = json.loads(done.stdout)
    actual = {name: BasePackage(one["version"], tuple(one["modules"])) for name, one in listed.items()}
    below = {**actual, **_packages_as_required(base, actual)}
    _require_fitting(wanted, below, base)
    unpacked = folder / UNPACKED
    maker = isolated_python("-m", "venv", "--without-pip", str(unpacked), python=base.interpreter.resolve())
    run_watched(maker, tell, f"{wanted.file}: an empty environment")
    programs, settings = unpacked / "bin", (unpacked / SETTINGS).read_bytes()
    before = {path.name: os.readlink(path) for path in programs.iterdir() if path.is_symlink()}
    site = next(unpacked.glob("lib/python*/site-packages"))
    add_base_modules(base.interpreter, site)
    noted = {(name, one.version) for name, one in below.items() if actual.get(name) != one}
    for name, version in noted:
        _write_package_metadata(site, name, version)
    listed, pins = folder / PACKAGES, folder / "constraints.txt"
    listed.write_text(wanted.text, "utf-8")
    pins.write_text("".join(f"{name}=={one.version}\n" for name, one in sorted(below.items())), "utf-8")
    words = ["--constraint", str(pins), "--requirement", str(listed)]
    python, guard, title = programs / "python", DiskGuard(tell, unpacked), f"packages of {wanted.file}"
    # With hashes or sources to build, pip needs the whole packages to choose.
    may_plan = not any(option in wanted.text for option in ("--hash=", "--no-binary"))
    downloads = planned_downloads(python, words, guard, title) if may_plan else []
    useless = [] if os.environ.get(_ANYWAY) else gpu_only_downloads(downloads)
    _require_without_gpu(downloads, useless, wanted.file)
    for download in useless:
        # pip takes a package with metadata for installed.
        _write_package_metadata(site, download.name, download.version)
    noted |= {(download.name, download.version) for download in useless}
    if rest := [download for download in downloads if download not in useless]:
        tell.say(f"{title}: {describe_download_size(rest)}")
    try:
        _unpack_wheels(python, folder, wanted, words, guard)
    except MakeError as error:
        raise MakeError(
            _explain_pip_failure(_name_team_files(str(error), listed, wanted), base, wanted.file, below)
        ) from None
    installed = [
        one
        for one in _installed_distributions(site, wanted.file)
        if (_normalize_package_name(one.name), one.version) not in noted
    ]
    _require_harmless(installed, below, base, wanted.file)
    # A package may have installed files with these names.
    for name, target in before.items():
        (programs / name).unlink(missing_ok=True)
        (programs / name).symlink_to(target)
    (unpacked / SETTINGS).write_bytes(settings)
    add_base_modules(base.interpreter, site)
    versions = {one.name: one.version for one in installed}
    locked = "".join(f"{name}=={version}\n" for name, version in sorted(versions.items()))
    (folder / LOCK).write_text(locked, "utf-8")
    cache.write_stamp(folder, Stamp(sys.version.split()[0], versions, {base.name: str(base.interpreter)}))


def _require_without_gpu(downloads: Sequence[Download], useless: Sequence[Download], shown_as: str) -> None:
    """MakeError if packages for NVIDIA's cards, gigabytes that a machine without a card cannot use, cannot be left
    out."""
    if not useless or not (linked := downloads_that_need_gpu(downloads)):
        return
    linked_names = ", ".join(f"{download.name} {download.version}" for download in linked)
    raise MakeError(
        f"{shown_as}: {linked_names} would bring packages for NVIDIA's cards, and this machine has no such card: "
        f"{describe_download_size(useless)}\n"
        "Ask for a version that a local environment has (`trainyard environments`), or let pip's configuration name "
        f"an index of builds for processors. To download them all the same: {_ANYWAY}=1"
    )


def _unpack_wheels(
    python: Path, folder: Path, wanted: LayerRequirements, words: Sequence[str], tell: MakeProgress
) -> None:
    """Chooses the packages of these words for pip, gets their wheels, judges these, and only then unpacks them."""
    report, chosen, wheels = folder / "report.json", folder / "chosen.txt", folder / "wheels"
    title = f"packages of {wanted.file}"
    run_pip(python, ["install", "--dry-run", "--report", str(report), *words], tell, title, hashed=False)
    options = [line for line in wanted.text.splitlines() if line.startswith("--")]
    lines = [_pinned_requirement(item, wanted.file) for item in json.loads(report.read_text("utf-8"))["install"]]
    if not lines:
        return
    chosen.write_text("\n".join([*options, *lines, ""]), "utf-8")
    run_pip(python, ["wheel", "--no-deps", "--wheel-dir", str(wheels), "-r", str(chosen)], tell, title, hashed=False)
    for wheel in sorted(wheels.iterdir()):
        require_confined_wheel(wheel, wanted.file)
    words = ["--no-deps", "--no-index", "--no-warn-script-location", *map(str, sorted(wheels.iterdir()))]
    run_pip(python, ["install", *words], tell, title, hashed=False)
    shutil.rmtree(wheels)


def _pinned_requirement(item: Mapping[str, Any], shown_as: str) -> str:
    """The line for pip that gets exactly this file. `item`: a package of pip's report."""
    name, version = item["metadata"]["name"], item["metadata"]["version"]
    _require_valid_metadata(name, version, shown_as)
    source = item["download_info"]
    asked = f"{name} @ {source['url']}" if item["is_direct"] else f"{name}=={version}"
    hashes = source["archive_info"]["hashes"]
    return " ".join([asked, *(f"--hash={kind}:{digest}" for kind, digest in sorted(hashes.items()))])


def _packages_as_required(base: Environment, below: Mapping[str, BasePackage]) -> Mapping[str, BasePackage]:
    """The packages of the base, with the names and versions that requirements use, as in `check`: `tensorflow` for
    tensorflow-cpu, and 1.13.0 for a PyTorch that Debian calls 1.13.0a0+gitunknown."""
    known = {}
    for name, version in versions_of(environment_rows()[base.name]).items():
        if one := below.get(name):
            for other in (name, *requested_package_names(name)):
                known[other] = BasePackage(one.version if len(versions_in(version)) > 1 else version, one.modules)
    return known


def _installed_distributions(site: Path, shown_as: str) -> list[metadata.Distribution]:
    packages = list(metadata.distributions(path=[str(site)]))
    for one in packages:
        texts: tuple[str | None, str | None] = (None, None)
        # For a folder without a metadata file, Python's own module returns None. The package `importlib_metadata`,
        # which replaces that module once it is imported, raises an error.
        with suppress(TypeError, FileNotFoundError):
            texts = one.metadata["Name"], one.metadata["Version"]
        _require_valid_metadata(*texts, shown_as)
    return packages


def _require_valid_metadata(name: str | None, version: str | None, shown_as: str) -> None:
    if not (name and _NAMES.fullmatch(name) and version and _VERSIONS.fullmatch(version)):
        raise MakeError(f"{shown_as}: a package has metadata with an invalid name or version, {(name, version)!a}")


def _write_package_metadata(site: Path, name: str, version: str) -> None:
    """Writes metadata of a package of the base environment, so that pip and importlib.metadata take it for
    installed."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8")


def _require_fitting(wanted: LayerRequirements, below: Mapping[str, BasePackage], base: Environment) -> None:
    """MakeError if a line asks for another version of a package of the framework. pip would refuse it too, but without
    naming the line. pip itself checks what other packages need of the framework."""
    for place, line in zip(wanted.places, wanted.text.splitlines(), strict=False):
        asked = Requirement(line.partition(" --hash=")[0]) if place else None
        if asked is None or asked.marker or (has := below.get(_normalize_package_name(asked.name))) is None:
            continue
        if asked.url or not asked.specifier.contains(has.version, prereleases=True):
            raise MakeError(
                f"{place}: `{asked}` does not fit {asked.name} {has.version}, which the environment `{base.name}` has\n"
                f"{_FIT}"
            )


def _name_team_files(text: str, listed: Path, wanted: LayerRequirements) -> str:
    """pip's output, with places in the team's files in place of those in ours."""

    def place(match: re.Match[str]) -> str:
        number = int(match[1]) - 1
        return wanted.places[number] if number < len(wanted.places) and wanted.places[number] else wanted.file

    return re.sub(rf"{re.escape(str(listed))} \(line (\d+)\)", place, text)


def _explain_pip_failure(text: str, base: Environment, shown_as: str, below: Mapping[str, BasePackage]) -> str:
    """A summary and a remedy, followed by pip's own lines."""
    if "ResolutionImpossible" in text or "conflicting dependencies" in text:
        reason, remedy = _explain_conflict(text, base, shown_as, below)
    elif any(words in text for words in _NO_NETWORK):
        reason, remedy = f"{shown_as}: pip reaches no package index", "Check the network, and `pip config list`."
    elif "No space left" in text:
        reason, remedy = (
            f"{shown_as}: the disk is full",
            f"Free some space in {cache.environments_cache()}, then try again.",
        )
    elif "DO NOT MATCH THE HASHES" in text or ("hash" in text and "--require-hashes" in text):
        reason = f"{shown_as}: a package has another hash than the file says, or none"
        remedy = (
            "If you did not expect that, do not install it. `pip-compile --generate-hashes` writes the hashes anew."
        )
    elif "No matching distribution" in text:
        reason = f"{shown_as}: a package has no wheel for this Python, or no index that pip reaches has it"
        remedy = "Check its name and version, and `pip config list`. To build it from its source, name it under "
        remedy += "`build`: requirements: { file: …, build: [NAME] }"
    else:
        reason, remedy = f"{shown_as}: pip did not install its packages", "pip's last lines say why:"
    return f"{reason}\n{remedy}\n{text}"


def _explain_conflict(text: str, base: Environment, shown_as: str, below: Mapping[str, BasePackage]) -> tuple[str, str]:
    """The reason and the remedy of a conflict. pip also reports a conflict if each version of a package needs another
    package that it cannot get."""
    if pinned := [f"{name} {one.version}" for name, one in sorted(below.items()) if f"{name}==" in text]:
        had = ", ".join(pinned)
        return f"{shown_as} asks for other versions than the environment `{base.name}` has ({had})", _FIT
    pairs = set(_DEPENDS.findall(text))
    if len(pairs) != 1 or _REQUESTED in text:
        return f"{shown_as}: no versions of its packages fit one another", "Ask for other versions."
    ((asker, name),) = pairs
    reason = f"{shown_as}: `{name}`, which {asker} needs, has no wheel for this Python"
    remedy = f"If it has a source only, add the line `{name}` and have it built: "
    return reason, f"{remedy}requirements: {{ file: …, build: [{name}] }}"


def _require_harmless(
    installed: list[metadata.Distribution], below: Mapping[str, BasePackage], base: Environment, shown_as: str
) -> None:
    """MakeError if a package would replace one of the framework's, under its name or another."""
    owners = {module: name for name, one in below.items() for module in one.modules}
    for one in installed:
        name = one.name
        if (pinned := below.get(_normalize_package_name(name))) is not None:
            raise MakeError(
                f"{shown_as}: {name} {one.version} would replace {name} {pinned.version} of the environment "
                f"`{base.name}`\n{_FIT}"
            )
        for module in sorted(set(_top_level_modules(one)) & set(owners)):
            raise MakeError(
                f"{shown_as}: {name} {one.version} brings a module `{module}`, which belongs to {owners[module]} "
                f"{below[owners[module]].version} of the environment `{base.name}`\nLeave one of the two out."
            )


def _top_level_modules(one: metadata.Distribution) -> Iterator[str]:
    for file in one.files or ():
        first = file.parts[0]
        if first == ".." or first.endswith((".dist-info", ".data", ".pth")) or first in _IGNORED_FOLDERS:
            continue
        # A folder without __init__.py may be shared by several packages.
        if len(file.parts) == 1 and first.endswith((".py", ".so")):
            yield first.partition(".")[0]
        elif len(file.parts) == 2 and file.name == "__init__.py":
            yield first


def _normalize_package_name(name: str) -> str:
    return name.replace("_", "-").replace(".", "-").lower()
