# SPDX-License-Identifier: Apache-2.0
"""Says how a training script is to run: its framework, nodes, processes, arguments and packages, from its imports and
calls, a requirements.txt beside it, and the lines that start it. Scripts are parsed, never run. The table is
catalog/first_stacks.toml.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any

from catalog.frameworks import Framework, framework_row
from catalog.imports import packages_of, provides_module
from catalog.tables import table
from schemas.job_code import code_files
from schemas.name_suggestions import quoted_list
from schemas.requirements import read_requirements
from schemas.scripts import MOST_BYTES, Scripts, read_scripts
from trainyard.bring.launch_lines import LaunchLine, find_launch_lines, read_launch_line
from trainyard.bring.model import name_for_stack

# The nodes of a job whose script distributes its training, if nothing says how many.
USUAL_NODES = 2
_SHELL_SCRIPTS = (".sh", ".bash", ".slurm", ".sbatch")
_PAGES = ("readme.md", "readme.rst", "readme.txt", "readme")
# More files than a folder of scripts has.
_MOST_FILES = 5000
_MOST_READ = 100
_LARGEST_TEXT = 500_000
REQUIREMENTS = "requirements.txt"
# File names that say nothing about what is trained: the folder's name is better.
_PLAIN_NAMES = frozenset({"train", "main", "run", "trainer", "training", "script", "app", "client", "run_training"})


class ScriptError(Exception):
    """A script that no job can be made of. The text is for its user."""


@dataclass(frozen=True, slots=True)
class TrainingScript:
    """How a script is to run. `folder`: that of its code; `command` starts there. `reasons`: what was concluded from
    what. `remarks`: what was left out or has to be added, and why. `missing`: packages that it needs and nothing lists.
    `arguments_needed`: those without which it ends at once, if no line has any.
    """

    name: str
    folder: Path
    command: tuple[str, ...]
    framework: Framework
    nodes: int
    processes: int | None
    per_accelerator: bool
    gpus: bool
    options: Mapping[str, bool]
    requirements: Path | None
    missing: tuple[str, ...]
    reasons: tuple[str, ...]
    remarks: tuple[str, ...]
    arguments_needed: tuple[str, ...]

    @property
    def role_counts(self) -> dict[str, int]:
        """Each role has its fewest nodes, and the one that may have more has the others."""
        roles = {name: row.minimum for name, row in self.framework.roles.items()}
        growing = next((name for name, row in self.framework.roles.items() if row.maximum is None), None)
        if growing is not None:
            roles[growing] += max(0, self.nodes - sum(roles.values()))
        return {name: number for name, number in roles.items() if number}


def read_training_script(path: Path, typed: str = "") -> TrainingScript:
    """Reads a script, a shell script that starts one, or a folder with a single script that trains.

    `typed`: a line that starts the script, which counts before those of files. Raises ScriptError.
    """
    line = _read_typed_line(typed) if typed else None
    if path.is_dir():
        path = _script_of_folder(path, line)
    elif path.suffix in _SHELL_SCRIPTS:
        lines = [one for one in find_launch_lines(_read_text(path), path.name) if _script_file(path.parent, one)]
        if not lines:
            raise ScriptError(f"{path} starts no Python script that is in {path.parent}/: name the script itself")
        line = line or lines[0]
        path = _script_file(path.parent, lines[0]) or path
    if path.suffix != ".py":
        raise ScriptError(f"{path} is not a Python script, a shell script or a folder")
    _require_readable(path)
    folder = path.parent
    files = frozenset(file.relative_to(folder).as_posix() for file in islice(code_files(folder), _MOST_FILES))
    line = line or next(_lines_for(path), None)
    command = (path.name, *(line.arguments if line else ()))
    said = read_scripts(folder, files, [path.name])
    if said.broken and (first := said.broken[0]).file == path.name:
        raise ScriptError(f"{path}:{first.line}: Python cannot read it: {first.why}")
    return _conclude_script(path, files, command, said, line)


def _conclude_script(
    path: Path, files: Collection[str], command: tuple[str, ...], said: Scripts, line: LaunchLine | None
) -> TrainingScript:
    remarks, reasons = list[str](), list[str]()
    row, module = _framework_of(said, line)
    framework = framework_row(row["framework"], row.get("strategy"))
    if module:
        reasons.append(f"imports {module}")
    elif not line or not line.framework:
        remarks.append(
            f"{path.name} imports no framework that trainyard knows: it runs on one node, which has the packages of "
            f"{framework.name}"
        )
    if line:
        reasons.append(line.place)
        if line.left_out:
            words = " ".join(line.left_out)
            remarks.append(f"{line.place}: `{words}` is left out, because only that line's shell knows its value")
        if line.has_secret:
            remarks.append(
                f"{line.place}: an argument that looks like a secret is left out: give it by `env`, with `trainyard "
                "secret set`"
            )
    nodes = (line.nodes if line else None) or row.get("nodes", USUAL_NODES)
    rows = table("first_stacks")["gpus"]
    wants_gpus = any(_matches_any(call.name, rows["calls"]) for call in said.calls)
    gpus = bool(line and line.gpus) or wants_gpus or any(_imports_module(said, name) for name in rows["modules"])
    options = {
        name: True
        for name, option in framework.options.items()
        if any(_imports_module(said, module) for module in option.imports)
    }
    requirements, listed = _requirements_beside(path.parent, remarks)
    missing = tuple(dict.fromkeys(_missing_packages(said, framework, listed)))
    return TrainingScript(
        job_name_of_script(path), path.parent, command, framework, nodes,
        line.processes if line else None, bool(line and line.per_accelerator), gpus, options, requirements, missing,
        tuple(reasons), tuple(remarks), () if line else _arguments_needed(said, path.name),
    )  # fmt: skip


def _requirements_beside(folder: Path, remarks: list[str]) -> tuple[Path | None, frozenset[str]]:
    """The requirements file of a script and its packages. A file that `check` refuses is not taken."""
    file = folder / REQUIREMENTS
    if not file.is_file():
        return None, frozenset()
    packages = read_requirements(file, REQUIREMENTS, Path(os.path.realpath(folder)), ())
    if not packages.problems:
        return file, packages.names
    problem = packages.problems[0]
    remarks.append(
        f"{file}:{problem.line}: {problem.message}, so the job does not name this file yet: {problem.remedy}, then add "
        "`requirements` to the job"
    )
    return None, packages.names


def job_name_of_script(path: Path) -> str:
    """A name for the job of a script: the file's, or its folder's if the file's says nothing."""
    plain = _PLAIN_NAMES | {"__main__"}
    named = path.resolve().parent.name if path.stem.lower() in plain else path.stem
    return name_for_stack(named, "train")


def _framework_of(said: Scripts, line: LaunchLine | None) -> tuple[Mapping[str, Any], str]:
    """The first row whose modules are imported, and the module. Without one, that of the line's launcher."""
    for row in table("first_stacks")["frameworks"]:
        module = next((name for name in row["modules"] if _imports_module(said, name)), None)
        if module is None or ("calls" in row and not any(_matches_any(call.name, row["calls"]) for call in said.calls)):
            continue
        if line and line.framework and row.get("nodes") == 1:
            # A launcher starts several processes, whatever the script does with them.
            return {**row, "nodes": USUAL_NODES}, module
        return row, module
    return {"framework": (line and line.framework) or "pytorch", "nodes": 1}, ""


def _imports_module(said: Scripts, name: str) -> bool:
    return any(item.module == name or item.module.startswith(f"{name}.") for item in said.imports)


def _missing_packages(said: Scripts, framework: Framework, listed: Collection[str]) -> Iterator[str]:
    """The packages that the script certainly imports, and that neither its framework's image nor a list has."""
    brings = table("modules")["brings"]
    brought = brings.get(f"{framework.name}/{framework.strategy}", brings.get(framework.name, ()))
    for item in said.certain:
        if item.module in sys.stdlib_module_names or item.module == "__main__":
            continue
        if not provides_module({*brought, *listed}, item.module):
            yield packages_of(item.module)[0]


def _arguments_needed(said: Scripts, script: str) -> tuple[str, ...]:
    """The arguments without which the script ends at once, as its argparse calls name them."""
    needed = list[str]()
    for call in said.calls:
        name = call.positional[0] if call.positional else None
        if call.file != script or not call.name.endswith(".add_argument") or not isinstance(name, str):
            continue
        optional = call.named.get("nargs") in ("?", "*") or "default" in call.named
        if call.named.get("required") is True or not (name.startswith("-") or optional):
            needed.append(str(call.positional[-1] if name.startswith("-") else name))
    return tuple(needed)


def _lines_for(path: Path) -> Iterator[LaunchLine]:
    """The lines that start this script: those of shell scripts beside it, its own, those of the README. Plain `python`
    counts in shell scripts only, because pages show it with arguments for a first look."""
    beside = sorted(path.parent.iterdir()) if path.parent.is_dir() else []
    shell = [file for file in beside if file.suffix in _SHELL_SCRIPTS]
    pages = [file for file in beside if file.name.lower() in _PAGES]
    for file in (*shell[:_MOST_READ], path, *pages):
        for line in find_launch_lines(_read_text(file), file.name):
            is_plain = line.launchers == ("python",)
            if (file in shell or not is_plain) and _script_file(path.parent, line) == path:
                yield line


def _script_file(folder: Path, line: LaunchLine) -> Path | None:
    """The script that a line starts. A line may be written for another folder: the file's name counts."""
    if line.as_module:
        file = folder.joinpath(*line.script.split(".")).with_suffix(".py")
    else:
        file = folder / Path(line.script).name
    return file if file.is_file() else None


def _script_of_folder(folder: Path, line: LaunchLine | None) -> Path:
    scripts = sorted(folder.glob("*.py"))[:_MOST_READ]
    named = [file for file in scripts if line and file.name == Path(line.script).name]
    started = [file for file in scripts if any(True for _ in _lines_for(file))]
    usual = [file for file in scripts if file.stem in ("train", "main")]
    for choice in (named, started, scripts, usual):
        if len(choice) == 1:
            return choice[0]
    if not scripts:
        raise ScriptError(f"{folder}/ has no Python script")
    names = quoted_list([file.name for file in scripts])
    raise ScriptError(f"{folder}/ has several scripts: name the one that trains. There are {names}")


def _read_typed_line(typed: str) -> LaunchLine:
    try:
        words = shlex.split(typed)
    except ValueError as error:
        raise ScriptError(f"`{typed}` cannot be split into words: {error}") from error
    line = read_launch_line(words, "--line", 0)
    if line is None:
        launchers = quoted_list(list(table("first_stacks")["launchers"]))
        raise ScriptError(f"`{typed}` starts no Python script by one of {launchers}")
    return line


def _read_text(file: Path) -> str:
    """The text of a file; empty if it is no text, or larger than people write."""
    try:
        if not file.is_file() or file.stat().st_size > _LARGEST_TEXT:
            return ""
        content = file.read_bytes()
    except OSError:
        return ""
    return "" if b"\0" in content else content.decode("utf-8-sig", errors="replace")


def _require_readable(path: Path) -> None:
    try:
        if not path.is_file():
            raise ScriptError(f"{path} {'is not a file' if path.exists() else 'does not exist'}")
        size = path.stat().st_size
        with path.open("rb") as file:
            is_binary = b"\0" in file.read(8192)
    except OSError as error:
        raise ScriptError(f"{path} cannot be read: {error.strerror}") from error
    if is_binary:
        raise ScriptError(f"{path} is a binary file, not a Python script")
    if size > MOST_BYTES:
        raise ScriptError(f"{path} has {size / 1e6:,.1f} MB: no training script is larger than {MOST_BYTES / 1e6} MB")


def _matches_any(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
