# SPDX-License-Identifier: Apache-2.0
"""The facts that checks use in addition to the Stack: the catalog's tables, and files beside the stack file.

Checks never read files. Everything is read here, before they run.
"""

from __future__ import annotations

import itertools
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from catalog import frameworks
from catalog.imports import imported_modules
from catalog.machines import machine_types_of
from catalog.platforms import PlatformRow, platforms
from catalog.tables import rows_at
from schemas.job_code import code_files
from schemas.model import Job, Stack
from schemas.requirements import PackageList, read_requirements
from schemas.scripts import Scripts, read_scripts

# The limit of files in a folder, so that a check of / or of a home folder ends soon.
MOST_FILES = 20_000
_USUAL_FILE = "requirements.txt"
_LARGEST_TEXT = 4 * 1024 * 1024
_ROOT_MARKS = ("Pulumi.yaml", "Pulumi.yml", ".git")


@dataclass(frozen=True, slots=True)
class CodeFolder:
    """A folder of training code: whether it exists and is inside the project, and its content."""

    exists: bool
    is_folder: bool = False
    inside: bool = True
    bytes: int = 0
    complete: bool = True
    files: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file beside the stack file: its text, or the reason why it cannot be read."""

    text: str = ""
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class UnnamedFile:
    """A requirements file that no job names: its path as a job would write it, and the packages in it."""

    file: str
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class OwnFramework:
    """A team's framework file: its columns, and a framework for each strategy; or the problem with the file."""

    columns: Mapping[str, Any] = field(default_factory=dict)
    rows: Mapping[str | None, frameworks.Framework] = field(default_factory=dict)
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """`shapes`, `regions` (name -> short name) and `realms` belong to the stack's platform.

    By job: `packages`, the content of its requirements file; `unnamed`, the requirements file beside the code of a job
    without `requirements`; `scripts`, the scripts that it starts; `modules`, all that its code may import. `texts` are
    the files of `Stack.text_files`, by their paths there. `today`: the day for which waivers are checked.
    """

    platforms: Mapping[str, PlatformRow]
    shapes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    regions: Mapping[str, str] = field(default_factory=dict)
    realms: Mapping[str, str] = field(default_factory=dict)
    own_frameworks: Mapping[str, OwnFramework] = field(default_factory=dict)
    folders: Mapping[str, CodeFolder] = field(default_factory=dict)
    packages: Mapping[str, PackageList] = field(default_factory=dict)
    unnamed: Mapping[str, UnnamedFile] = field(default_factory=dict)
    scripts: Mapping[str, Scripts] = field(default_factory=dict)
    modules: Mapping[str, frozenset[str]] = field(default_factory=dict)
    texts: Mapping[str, TextFile] = field(default_factory=dict)
    today: date = date.min

    def framework_names(self) -> tuple[str, ...]:
        return (*_known_frameworks(), *self.own_frameworks)

    def framework(self, job: Job) -> frameworks.Framework | None:
        """The framework of a job. None if it or its strategy is unknown, which other checks report."""
        framework = self._row(job)
        return None if framework is None else job.adapted(framework)

    def _row(self, job: Job) -> frameworks.Framework | None:
        own = self.own_frameworks.get(job.framework)
        if own is not None:
            return own.rows.get(job.strategy)
        if job.framework not in _known_frameworks():
            return None
        declared = frameworks.framework_document(job.framework).get("strategies", {})
        if job.strategy is not None and job.strategy not in declared:
            return None
        return frameworks.framework_row(job.framework, job.strategy)

    def known_jobs(self, stack: Stack) -> Iterator[tuple[str, Job, frameworks.Framework]]:
        """The jobs whose framework and strategy are known, with their names."""
        for name, job in stack.jobs.items():
            if framework := self.framework(job):
                yield name, job, framework

    def strategies(self, framework: str) -> tuple[str, ...]:
        own = self.own_frameworks.get(framework)
        if own is not None:
            return tuple(own.columns.get("strategies", ()))
        is_built_in = framework in _known_frameworks()
        return tuple(frameworks.framework_document(framework).get("strategies", ())) if is_built_in else ()


@cache
def _known_frameworks() -> tuple[str, ...]:
    return frameworks.framework_names()


def gather_facts(stack: Stack, folder: Path, on: date | None = None) -> Facts:
    """The facts for one stack. Its file is in `folder`. `on`: the day of the check; None is today."""
    absolute = Path(os.path.realpath(folder))
    # Code may be anywhere inside the stack file's project.
    parents = (
        parent for parent in (absolute, *absolute.parents) if any((parent / mark).exists() for mark in _ROOT_MARKS)
    )
    root = next(parents, absolute)
    code = {name: job.code.folder for name, job in stack.jobs.items() if job.code and job.code.folder}
    folders = {path: _describe_folder(folder / path, root) for path in set(code.values())}
    wanted = {name: job.requirements for name, job in stack.jobs.items() if job.requirements}
    lists = {item: read_requirements(folder / item.file, item.file, root, item.build) for item in set(wanted.values())}
    commands = {
        name: (job.command, *(role.command for role in job.roles.values() if role.command))
        for name, job in stack.jobs.items()
    }
    region = platforms()[stack.platform].region
    return Facts(
        platforms=platforms(),
        shapes=machine_types_of(stack.platform),
        regions=rows_at(region.names) if region else {},
        realms=rows_at(region.realms) if region else {},
        own_frameworks={
            name: _read_own_framework(name, folder / file, root) for name, file in stack.frameworks.items()
        },
        folders=folders,
        packages={name: lists[item] for name, item in wanted.items()},
        unnamed={
            name: file for name, job in stack.jobs.items() if (file := _find_unnamed_requirements(job, folder, root))
        },
        modules={
            name: imported_modules(folder / path)
            for name, path in code.items()
            if name in wanted and folders[path].files
        },
        scripts={
            name: read_scripts(Path(os.path.realpath(folder / path)), folders[path].files, commands[name])
            for name, path in code.items()
            if folders[path].files and folders[path].complete
        },
        texts={name: _read_text_file(folder / name) for name in stack.text_files()},
        today=on or date.today(),
    )


def _find_unnamed_requirements(job: Job, folder: Path, root: Path) -> UnnamedFile | None:
    """The requirements.txt in the code's folder or beside the stack file, for a job that names none."""
    if job.requirements or not job.code or not job.code.folder:
        return None
    for parent in (job.code.folder.rstrip("/"), "."):
        file = f"{parent}/{_USUAL_FILE}"
        if (folder / file).is_file():
            return UnnamedFile(file, read_requirements(folder / file, file, root, ()).names)
    return None


def _read_text_file(file: Path) -> TextFile:
    try:
        with file.open("rb") as content:
            return TextFile(content.read(_LARGEST_TEXT).decode())
    except OSError as problem:
        return TextFile(problem=problem.strerror or type(problem).__name__)
    except ValueError:
        return TextFile(problem="it is not text")


def _read_own_framework(name: str, file: Path, root: Path) -> OwnFramework:
    try:
        if not Path(os.path.realpath(file)).is_relative_to(root):
            return OwnFramework(problem="is outside the project")
        columns = frameworks.with_extended_columns(tomllib.loads(file.read_text("utf-8")))
        framework = frameworks.parse_framework(columns)
        rows: dict[str | None, frameworks.Framework] = {None: framework}
        rows |= {strategy: frameworks.parse_framework(columns, strategy) for strategy in framework.strategies}
    except OSError as problem:
        return OwnFramework(problem=f"cannot be read: {problem.strerror}")
    except (ValueError, RecursionError) as problem:
        return OwnFramework(problem=str(problem))
    if framework.name != name and name not in _known_frameworks():
        # Nodes see this name, and treat the name of a built-in framework specially.
        return OwnFramework(problem=f"has the name `{framework.name}`; the stack calls it `{name}`")
    return OwnFramework(columns, rows)


def _describe_folder(folder: Path, root: Path) -> CodeFolder:
    try:
        real = Path(os.path.realpath(folder))
        inside = real.is_relative_to(root)
        if not real.is_dir():
            return CodeFolder(exists=real.exists(), inside=inside)
        total, names = 0, set[str]()
        for file in itertools.islice(code_files(real), MOST_FILES) if inside else ():
            total += file.stat().st_size
            names.add(file.relative_to(real).as_posix())
        return CodeFolder(True, True, inside, total, len(names) < MOST_FILES, frozenset(names))
    except (OSError, ValueError):
        return CodeFolder(exists=False)
