# SPDX-License-Identifier: Apache-2.0
"""What changes beside the stacks: the files of the repository by kind, Pulumi.yaml by key, requirements by package."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from schemas.load import NAMESPACE
from schemas.project_file import PROJECT_FILE
from schemas.requirements import logical_lines
from schemas.source import MAXIMUM_BYTES, read_source
from trainyard.review.file_kinds import (
    ADDED,
    FILE_KINDS,
    OTHER_FILES,
    PACKAGES,
    PROJECTS,
    ChangedFile,
    FileKind,
    files_changed,
    kind_of_file,
    some_of,
)
from trainyard.review.model import NO_REPOSITORY, ProgramChange, RepositoryReview
from trainyard.review.program_settings import compare_settings
from trainyard.review.revisions import CHECKOUT, SUBMODULE_MODE, Side, git_in_folder, top_of_repository

# Files of a kind in the JSON; the others are counted.
_RECORDED = 200
_PROGRAM = "components/program.py"
_PACKAGE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(.*)")
_HASHES = re.compile(r"\s--hash[=\s]\S+")
_CREDENTIALS = re.compile(r"//[^/\s]*@")


def review_repository(stacks: Path, before: Side | None) -> RepositoryReview:
    """What changed beside the stacks since a revision. Empty without one."""
    if before is None or before.aside is None:
        return NO_REPOSITORY
    top = top_of_repository(stacks)
    code = _folder_of_code(top, before.aside)
    by_kind: dict[FileKind, list[ChangedFile]] = {}
    for file in _changed_files(top, before.revision):
        kind = kind_of_file(file, code)
        if kind is PROJECTS and not _is_own_project(file, before.aside, top):
            kind = OTHER_FILES
        if (
            kind is PACKAGES
            and file.name.endswith(".txt")
            and _list_the_same(before.aside / file.path, top / file.path)
        ):
            kind = OTHER_FILES
        by_kind.setdefault(kind, []).append(file)
    found: list[tuple[str, ProgramChange]] = []
    if before.remark:
        found.append(("a revision without `review`", ProgramChange("review", before.remark)))
    if before.moved_from:
        words = f"the stacks moved: {before.moved_from} -> {stacks.resolve().relative_to(top)}"
        found.append(("the folder of the stacks", ProgramChange("moved", words)))
    for kind in FILE_KINDS:
        files = by_kind.get(kind, [])
        if kind is PROJECTS:
            found += ((kind.title, change) for file in files for change in _project_changes(file, before.aside, top))
        elif files:
            details = [kind.decides]
            for file in files:
                if file.commits:
                    details.append(f"{file.name}: {' -> '.join(commit[:12] for commit in file.commits)}")
                elif kind is PACKAGES and file.name.endswith(".txt"):
                    then, now = (_text_or_empty(side / file.path) for side in (before.aside, top))
                    details += some_of([f"{file.name}: {change}" for change in compare_packages(then, now)])
            recorded = tuple(file.name for file in files[:_RECORDED])
            found.append((kind.title, ProgramChange(kind.kind, files_changed(kind, files), tuple(details), recorded)))
    titles = tuple(dict.fromkeys(title for title, _ in found))
    return RepositoryReview(titles, tuple(change for _, change in found), len(by_kind.get(OTHER_FILES, ())))


def compare_packages(before: str, after: str) -> Iterator[str]:
    """What differs in the lines of a requirements file, as sentences: packages, versions, hashes and options."""
    then, now = _package_lines(before), _package_lines(after)
    for name in sorted({**then, **now}):
        was, becomes = then.get(name), now.get(name)
        if was is None or becomes is None:
            versions = (was or becomes or ("", ""))[0]
            yield f"{name}{f' {versions}' if versions else ''} {'added' if was is None else 'removed'}"
        elif was[0] != becomes[0]:
            yield f"{name}: {was[0] or 'any version'} -> {becomes[0] or 'any version'}"
        elif was != becomes:
            yield f"{name} {was[0]}: other hashes of the same version"


def _list_the_same(before: Path, after: Path) -> bool:
    """Whether two requirements files differ only in comments and in the order of packages. The order of options may
    mean something."""
    if any(file.is_symlink() or not file.is_file() or file.stat().st_size > MAXIMUM_BYTES for file in (before, after)):
        return False
    texts = (file.read_text("utf-8", "surrogateescape") for file in (before, after))
    then, now = ([line for _, line in logical_lines(text)] for text in texts)
    options_before, options_after = ([line for line in lines if line.startswith("-")] for lines in (then, now))
    return sorted(then) == sorted(now) and options_before == options_after


def _package_lines(text: str) -> dict[str, tuple[str, str]]:
    """By package, or by option: the versions, and the hashes."""
    lines: dict[str, tuple[str, str]] = {}
    for _, line in logical_lines(text):
        hashes = " ".join(sorted(_HASHES.findall(line)))
        shown = _CREDENTIALS.sub("//…@", _HASHES.sub("", line).strip())
        package = _PACKAGE.fullmatch(shown)
        lines[package[1] if package else shown] = (package[2].strip() if package else "", hashes)
    return lines


def _folder_of_code(top: Path, aside: Path) -> str | None:
    """The folder of trainyard's code in the repository, with a slash at its end. None: it is no part of it."""
    if CHECKOUT.is_relative_to(top):
        folder = str(CHECKOUT.relative_to(top))
        return "" if folder == "." else f"{folder}/"
    # The code of another checkout may review a clone of trainyard.
    return "" if any((side / _PROGRAM).is_file() for side in (top, aside)) else None


def _changed_files(top: Path, revision: str) -> Iterator[ChangedFile]:
    """Files that differ from a revision, committed or not. New files that git does not know yet count, too, unless it
    ignores them."""
    # The repository may not hide submodules by its own settings.
    words = ("diff", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", "--ignore-submodules=none")
    fields = git_in_folder(top, *words, revision, "--").split("\0")
    for entry, path in zip(fields[::2], fields[1::2], strict=False):
        mode, new_mode, commit, new_commit, status = entry.removeprefix(":").split(" ")
        commits = (commit, new_commit) if SUBMODULE_MODE in (mode, new_mode) else None
        if commits and (top / path / ".git").exists():
            # git writes zeros for a commit that is checked out and not committed.
            commits = commit, git_in_folder(top / path, "rev-parse", "HEAD")
        yield ChangedFile(path, status[:1], commits)
    for path in git_in_folder(top, "ls-files", "--others", "--exclude-standard", "-z").split("\0"):
        if path:
            yield ChangedFile(path, ADDED)


def _is_own_project(file: ChangedFile, aside: Path, top: Path) -> bool:
    """Whether it is a project of trainyard's: a repository may have others. One that cannot be read counts."""
    sides = (_settings_of_project(side / file.path) for side in (aside, top))
    return any(settings is None or f"{settings.get('name')}:" == NAMESPACE for settings in sides)


def _project_changes(file: ChangedFile, aside: Path, top: Path) -> Iterator[ProgramChange]:
    then, now = (_settings_of_project(side / file.path) for side in (aside, top))
    if then is None or now is None:
        yield ProgramChange("project", f"{file.name} cannot be read, so its changes are not known", (), (file.name,))
        return
    place = "" if file.name == PROJECT_FILE else f"{file.name}: "
    for change in compare_settings(then, now):
        yield replace(change, kind="project", words=f"{place}{change.words}", files=(file.name,))


def _settings_of_project(file: Path) -> Mapping[str, Any] | None:
    """The keys of a project file, down to the second level. Empty without a file, None if it cannot be read."""
    if not file.is_file():
        return {}
    data = read_source(file).data
    if not isinstance(data, Mapping):
        return None
    flat: dict[str, Any] = {}
    for key, value in data.items():
        flat |= {f"{key}.{name}": item for name, item in value.items()} if isinstance(value, Mapping) else {key: value}
    return flat


def _text_or_empty(file: Path) -> str:
    if file.is_symlink() or not file.is_file():
        return ""
    with file.open("rb") as content:
        return content.read(MAXIMUM_BYTES).decode("utf-8", "replace")
