# SPDX-License-Identifier: Apache-2.0
"""Code folders as archives. The same files give the same archive, byte for byte, with the same name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pulumi

from components.plan.model import JobPlan, Plan
from components.refusal import RefusedError
from components.voice import warn
from schemas.checks.registry import Wrong, at
from schemas.code import CodeArtifact, left_out_links

# A separate folder for artifacts, for temporary stacks.
ARTIFACTS = "TRAINYARD_ARTIFACTS"
ARTIFACTS_FOLDER = Path(".trainyard", "artifacts")


# Writes the archive of a folder below another one, under a name that begins as the third says.
Builder = Callable[[Path, Path, str], CodeArtifact]


def code_artifact(plan: Plan, job: JobPlan, folder: Path, build: Builder) -> CodeArtifact | None:
    """The archive of a job's code. None if the code is in the image or comes from git."""
    if job.code is None or job.code.folder is None:
        return None
    code = (folder / job.code.folder).resolve()
    warn_of_links(job.name, code)
    try:
        return build(code, artifacts_folder() / plan.stack, job.called)
    except (OSError, UnicodeError) as problem:
        message = f"no artifact can be made of `{job.code.folder}`: {problem}"
        remedy = f"correct the problem, or set {ARTIFACTS} to another folder for artifacts"
        raise RefusedError([Wrong(at("jobs", job.name, "code"), message, remedy)]) from None


def warn_of_links(job: str, code: Path) -> None:
    """`code`: the job's folder. What is left out of it would be missed on the nodes only."""
    if links := left_out_links(code):
        named = ", ".join(links[:5]) + (" …" if len(links) > 5 else "")
        warn(f"job {job}: links out of the code folder, or to folders, are left out: {named}")


def artifacts_folder() -> Path:
    """The folder for artifacts, relative to the program: the path is part of the job, and checkouts differ.

    If the checkout is read-only, such as a shared release, the folder is in the team's own repository.
    """
    if named := os.environ.get(ARTIFACTS):
        return Path(named)
    if os.access(ARTIFACTS_FOLDER if ARTIFACTS_FOLDER.exists() else ".", os.W_OK):
        return ARTIFACTS_FOLDER
    return Path(os.path.relpath(pulumi.runtime.get_root_directory())) / ARTIFACTS_FOLDER
