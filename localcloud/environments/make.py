# SPDX-License-Identifier: Apache-2.0
"""Makes environments, and says beforehand what that costs and what prevents it.

An incomplete environment has no stamp, so it is never used, and is made again.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from localcloud.environments import apt, cache, debian, port_shim
from localcloud.environments.cache import Stamp
from localcloud.environments.environment_rows import EnvironmentRow, environment_rows
from localcloud.environments.find import (
    Environment,
    MissingEnvironment,
    find_environment,
    locate_environment,
    missing_packages,
)
from localcloud.environments.watched_commands import MakeError, MakeProgress, run_pip, run_watched
from trainyard.engine.isolated import isolated_python

_SITES = "import json, sys; print(json.dumps([p for p in sys.path if p.endswith(('site-packages', 'dist-packages'))]))"
# Variables of the caller's Python that must not affect the proof, because nodes do not have them.
_NOT_FOR_PROOFS = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
_PROOF = """
import importlib, json, sys
imported = {name: importlib.import_module(name) for name in sys.argv[1].split(",")}
exec(sys.argv[2])
tops = {name.partition(".")[0]: sys.modules[name.partition(".")[0]] for name in imported}
print(json.dumps({
    "python": sys.version.split()[0],
    "versions": {name: str(getattr(module, "__version__", "")) for name, module in tops.items()},
    "modules": {name: module.__file__ for name, module in tops.items()},
}))
"""


def make_environment(name: str, tell: MakeProgress, install: bool = False) -> Environment:
    """Makes an environment and those it builds on. With `install`, root also installs the Debian packages it needs."""
    port_shim.make_port_shim(tell.say)
    existing = find_environment(name)
    if isinstance(existing, Environment):
        return existing
    row = environment_rows()[name]
    if row.kind == "this":
        raise MakeError(f"{name}: {existing.reason}\n{existing.remedy}")
    _require_packages(row, tell, install)
    if row.base in environment_rows():
        make_environment(row.base, tell, install)
    place = locate_environment(row)
    if isinstance(place, MissingEnvironment):
        raise MakeError(f"{name}: {place.reason}\n{place.remedy}".strip())
    folder, interpreter = place
    with cache.lock_environment(folder, tell.say):
        if cache.read_stamp(folder) is None:
            duration = f"about {row.minutes} minute{'' if row.minutes == 1 else 's'} on two quiet processors"
            tell.say(f"making the environment `{name}`: {row.megabytes} MB and {duration}, once per machine")
            cache.clear_folder(folder)
            if row.kind == "debian":
                debian.fill_debian(row, folder, tell)
            else:
                _fill_venv(row, folder, interpreter, tell)
            for path in row.repairs:
                # A package imports the repair through an entry point, which unlike `.pth` files also works in layers.
                site = _modules_folder(folder)
                shutil.copyfile(path, site / path.name)
                described = site / f"{path.stem}-1.dist-info"
                described.mkdir()
                (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {path.stem}\nVersion: 1\n", "utf-8")
                entry = f"[{row.repair_point}]\n{path.stem} = {path.stem}:apply\n"
                (described / "entry_points.txt").write_text(entry, "utf-8")
            for library, pattern in row.libraries.items():
                shared = row.library_folder(folder)
                shared.mkdir(exist_ok=True)
                (shared / library).symlink_to(next(_modules_folder(folder).glob(pattern)))
            cache.write_stamp(folder, _prove_environment(row, folder))
            tell.say(f"the environment `{name}` is ready")
    made = find_environment(name)
    if isinstance(made, MissingEnvironment):
        raise MakeError(f"{name}: made, but {made.reason}")
    return made


def _require_packages(row: EnvironmentRow, tell: MakeProgress, install: bool) -> None:
    absent = missing_packages(row)
    unfinished = apt.unfinished_packages(row.packages)
    if not absent and not unfinished:
        return
    if not install or not apt.may_install():
        if not absent:
            raise MakeError("{}: {}\n{}".format(row.name, *apt.explain_unfinished(unfinished)))
        raise MakeError(
            f"{row.name}: it needs system packages that are not installed: {', '.join(absent)}\n"
            f"On Debian, as root: {apt.install_command(absent)}"
        )
    apt.install_packages(absent or unfinished, tell)
    if still := missing_packages(row):
        raise MakeError(f"{row.name}: apt-get succeeded, but these packages are still missing: {', '.join(still)}")


def _fill_venv(row: EnvironmentRow, folder: Path, interpreter: Path, tell: MakeProgress) -> None:
    system = ["--system-site-packages"] if row.base and row.base not in environment_rows() else []
    maker = isolated_python("-m", "venv", "--without-pip", *system, str(folder), python=interpreter.resolve())
    run_watched(maker, tell, f"{row.name}: an empty environment")
    python = folder / "bin" / "python"
    if row.base in environment_rows():
        add_base_modules(interpreter, _modules_folder(folder))
    for path in (path for path in row.lists if path.name != row.built):
        # Wheels only, because installing them runs no code from PyPI and fetches no unlocked build packages.
        run_pip(
            python,
            ["install", "--no-deps", "--only-binary", ":all:", "-r", str(path)],
            tell,
            f"{row.name}: {path.stem}",
        )
    if row.built:
        _compile_wheel(row, python, tell)


def add_base_modules(base: Path, site: Path) -> None:
    """Makes the modules of the base environment importable, after the environment's own."""
    result = subprocess.run(isolated_python("-c", _SITES, python=base), capture_output=True, text=True, check=False)
    if result.returncode:
        raise MakeError(f"{base} does not start: {result.stderr.strip()[-300:]}")
    (site / "base.pth").write_text("\n".join(json.loads(result.stdout)) + "\n", "utf-8")


def _modules_folder(folder: Path) -> Path:
    return next(path for name in ("site-packages", "dist-packages") for path in folder.glob(f"lib/python*/{name}"))


def _compile_wheel(row: EnvironmentRow, python: Path, tell: MakeProgress) -> None:
    """Compiles a wheel from its locked source, against the packages of the environment, and installs it."""
    asked = subprocess.run(
        isolated_python("-c", "import sys; print('%d.%d' % sys.version_info[:2])", python=python),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if asked.returncode:
        raise MakeError(f"{python} does not start: {asked.stderr.strip()[-300:]}")
    version = asked.stdout.strip()
    source = row.lists[-1]
    places = {"python": version, "requirements": source.parent}
    settings = {name: text.format(**places) for name, text in row.build.items()}
    path = os.pathsep.join([str(python.parent), os.environ.get("PATH", os.defpath)])
    tell.say(f"{row.name}: compiling, about {row.minutes} minutes on two quiet processors")
    with tempfile.TemporaryDirectory(prefix="trainyard-wheel-") as folder:
        # Without pip's cache, which may have a wheel of this version that was compiled against other packages.
        words = [
            "wheel",
            "--no-cache-dir",
            "--verbose",
            "--no-deps",
            "--no-build-isolation",
            "--wheel-dir",
            folder,
            "-r",
            str(source),
        ]
        run_pip(python, words, tell, f"{row.name}: compiling", {**settings, "PATH": path, "TMPDIR": folder})
        wheels = [str(wheel) for wheel in Path(folder).glob("*.whl")]
        run_pip(python, ["install", "--no-deps", *wheels], tell, f"{row.name}: installing", hashed=False)


def _prove_environment(row: EnvironmentRow, folder: Path) -> Stamp:
    """Imports the modules in a separate process, and returns the result. The process always writes bytecode, because
    nodes cannot write it, and would compile the modules at each start."""
    proof = row.proof + (debian.ONLY_OWN_LIBRARIES if row.kind == "debian" else "")
    command = isolated_python("-c", _PROOF, ",".join(row.imports), proof, python=folder / "bin" / "python")
    with tempfile.TemporaryDirectory() as empty:
        writes = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_PROOFS}
        writes |= row.library_path(folder)
        result = subprocess.run(command, cwd=empty, env=writes, capture_output=True, text=True, check=False)
    if result.returncode:
        # The last line of a traceback says what is missing.
        last = (result.stderr.strip().splitlines() or [f"its Python ended with {result.returncode}"])[-1]
        raise MakeError(f"{row.name}: made, but it does not work: {last}")
    return Stamp(**json.loads(result.stdout.splitlines()[-1]))


@dataclass(frozen=True)
class Obstacle:
    """Why an environment cannot be made on this machine, and the command that changes that."""

    name: str
    reason: str
    remedy: str


def rows_to_make(names: Iterable[str]) -> tuple[EnvironmentRow, ...]:
    """The environments of these names that do not exist, each after the one that it builds on."""
    ordered: dict[str, EnvironmentRow] = {}
    for name in names:
        row = environment_rows()[name]
        for needed in (*((environment_rows()[row.base],) if row.base in environment_rows() else ()), row):
            if not isinstance(find_environment(needed.name), Environment):
                ordered[needed.name] = needed
    return tuple(ordered.values())


def describe_cost(made: Sequence[EnvironmentRow]) -> str:
    """`ray (330 MB, 1 min), tensorflow (1200 MB, 1 min)`, and their sum if there are several."""
    each = ", ".join(f"{row.name} ({row.megabytes} MB, {row.minutes} min)" for row in made)
    megabytes, minutes = sum(row.megabytes for row in made), sum(row.minutes for row in made)
    return f"{each}: {megabytes} MB, about {minutes} minutes" if len(made) > 1 else each


def find_obstacle(row: EnvironmentRow) -> Obstacle | None:
    """Why this machine cannot make an environment; None if it can."""
    if row.base in environment_rows() and (below := find_obstacle(environment_rows()[row.base])):
        return Obstacle(row.name, below.reason, below.remedy)
    if isinstance(find_environment(row.name), Environment):
        return None
    if absent := missing_packages(row):
        reason = f"it needs Debian packages that are not installed: {', '.join(absent)}"
        return Obstacle(row.name, reason, debian_packages_command((row.name,), absent))
    if unfinished := apt.unfinished_packages(row.packages):
        return Obstacle(row.name, *apt.explain_unfinished(unfinished))
    if row.kind == "debian" and (reason := debian.find_debian_obstacle(row)):
        return Obstacle(row.name, reason, debian.own_packages_command(row))
    if row.kind == "this":
        missing = find_environment(row.name)
        assert isinstance(missing, MissingEnvironment)
        return Obstacle(row.name, missing.reason, missing.remedy)
    place = None if row.base in environment_rows() else locate_environment(row)
    return Obstacle(row.name, place.reason, place.remedy) if isinstance(place, MissingEnvironment) else None


def debian_packages_command(names: Sequence[str], absent: Sequence[str]) -> str:
    """The command that installs Debian packages: for root ours, which fetches package lists too; otherwise sudo."""
    if apt.may_install():
        return f"trainyard environments make --apt {' '.join(names)}"
    return f"{'' if os.geteuid() == 0 else 'sudo '}{apt.install_command(absent)}"
