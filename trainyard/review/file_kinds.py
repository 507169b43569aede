# SPDX-License-Identifier: Apache-2.0
"""The kinds of files that decide how stacks are reviewed and deployed, and which of them a change touches.

Standard library only: the job that comments has no packages (docs/review.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from schemas.name_suggestions import count_noun

# Files and packages in a sentence; the others are counted.
_LISTED = 12
ADDED, REMOVED, MODIFIED = "A", "D", "M"
_STATUS = {ADDED: "added ", REMOVED: "removed "}


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of files, and what a change of them can do. `own`: patterns of paths below the folder of trainyard's code.
    `anywhere`: patterns of names, and after a slash, of paths from the top of a repository."""

    kind: str
    title: str
    decides: str
    own: tuple[str, ...] = ()
    anywhere: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A path in the repository. `status`: git's letter. `commits`: of a submodule, before and after."""

    path: str
    status: str
    commits: tuple[str, str] | None = None

    @property
    def name(self) -> str:
        # A name that is not UTF-8 has lone surrogates, which no form can write.
        return self.path.encode("utf-8", "backslashreplace").decode()


_SUBMODULES = FileKind("submodules", "submodules", "code of another repository, at another commit")
PROJECTS = FileKind("project", "Pulumi.yaml", "what the engine runs, and where it keeps states", (), ("Pulumi.yaml",))
PACKAGES = FileKind(
    "packages", "packages", "what is installed beside the program, and runs with it",
    ("pyproject.toml", "requirements*.txt"), ("/*requirements*.txt", "/constraints*.txt"),
)  # fmt: skip
# In the order in which people should look at them. The first row that fits a file is its kind.
FILE_KINDS = (
    FileKind(
        "review", "the review", "what this review says: made with this code, it says what the change wants it to say",
        ("trainyard/review/*", "trainyard/markup.py"),
    ),
    FileKind(
        "policies", "the policies",
        "what they let pass: a review made with this code judges both sides by the changed rules, so that a weakened"
        " rule shows nowhere else",
        ("policies/*",),
    ),
    FileKind(
        "workflows", "workflows", "whether and how changes are reviewed and deployed", (".ci/*", "Makefile"),
        (
            "/.github/*", "CODEOWNERS", "/.gitlab-ci*", "/.gitlab/*", "/.circleci/*",
            "/azure-pipelines*", "/bitbucket-pipelines*", "Jenkinsfile", "/.pre-commit-*",
        ),
    ),
    PROJECTS,
    FileKind(
        "program", "the program", "what `up` makes, of every stack; each side of a review runs its own",
        ("__main__.py", "components/*", "catalog/*"),
    ),
    FileKind("provider", "the provider", "how runs start, with the credentials of whoever runs `up`", ("provider/*",)),
    FileKind("launcher", "the launcher", "what runs on every node before and beside the training", ("launcher/*",)),
    FileKind("schemas", "the schemas", "what `check` accepts", ("schemas/*",)),
    FileKind("localcloud", "the local cloud", "what a rehearsal proves", ("localcloud/*",)),
    FileKind("commands", "the commands", "what `trainyard` does with your credentials", ("trainyard/*", "tools/*")),
    PACKAGES,
    _SUBMODULES,
    FileKind(
        "images", "image files", "what images are built of, and so what runs", (),
        ("Dockerfile*", "*.Dockerfile", "Containerfile*"),
    ),
)  # fmt: skip
# Files that decide nothing: documents, and stack files, which have reviews of their own.
_PASSED_OVER = FileKind("passed over", "", "", (), ("*.md", "LICENSE*", "/docs/*", "Pulumi.*.yaml"))
OTHER_FILES = FileKind("other", "", "")


def kind_of_file(file: ChangedFile, code: str | None) -> FileKind:
    if file.commits:
        return _SUBMODULES
    path = PurePosixPath(file.path)
    own = file.path.removeprefix(code) if code is not None and file.path.startswith(code) else None
    for kind in (*FILE_KINDS, _PASSED_OVER):
        if own is not None and any(fnmatchcase(own, pattern) for pattern in kind.own):
            return kind
        if any(fnmatchcase(f"/{path}" if pattern[0] == "/" else path.name, pattern) for pattern in kind.anywhere):
            return kind
    return OTHER_FILES


def files_changed(kind: FileKind, files: Sequence[ChangedFile]) -> str:
    """The files of a kind that change, as a sentence."""
    named = [f"{_STATUS.get(file.status, '')}{file.name}" for file in files]
    return f"{kind.title}: {count_noun(len(files), 'file')} changed: {', '.join(some_of(named))}"


def some_of(sentences: list[str]) -> list[str]:
    more = len(sentences) - _LISTED
    return [*sentences[:_LISTED], f"and {more} more"] if more > 0 else sentences
