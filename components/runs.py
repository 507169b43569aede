# SPDX-License-Identifier: Apache-2.0
"""What runs are made of on every platform: the `Run` resource of our own provider (docs/contracts.md), references that
are filled in with the platform's values, and the archive of a job's code."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pulumi

from components.messages import RefusedError, warn_user
from components.plan.model import RUN_TYPE, JobPlan, Plan, expand_references
from schemas.findings import Wrong, at
from schemas.job_code import CodeArtifact, left_out_links
from schemas.model import EnvValue, Secret

TYPE = RUN_TYPE


class RunProvider(pulumi.ProviderResource):
    """Our provider. It gets its region and credentials explicitly, never from the stack's own `trainyard:` keys."""

    def __init__(self, name: str, settings: Mapping[str, Any], opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("trainyard", name, dict(settings), opts)


class Run(pulumi.CustomResource):
    """A training run. If one of its inputs changes, it starts again."""

    def __init__(self, name: str, inputs: Mapping[str, Any], opts: pulumi.ResourceOptions | None = None) -> None:
        outputs = {"state": None, "node_runs": None}
        super().__init__(TYPE, name, {**outputs, **inputs}, opts)

    @property
    @pulumi.getter
    def state(self) -> pulumi.Output[str]:
        return cast("pulumi.Output[str]", pulumi.get(self, "state"))

    @property
    @pulumi.getter(name="nodeRuns")
    def node_runs(self) -> pulumi.Output[list[Mapping[str, Any]]]:
        return cast("pulumi.Output[list[Mapping[str, Any]]]", pulumi.get(self, "node_runs"))

    def translate_output_property(self, prop: str) -> str:
        return "node_runs" if prop == "nodeRuns" else prop


def old_run_names(names: Iterable[str]) -> list[pulumi.Input[str | pulumi.Alias]] | None:
    """Pulumi's option `aliases` for the earlier names of a job or run, so that it keeps its state when it is
    renamed."""
    return [pulumi.Alias(name=name) for name in names] or None


@dataclass(frozen=True)
class Filler:
    """Fills in references with the platform's values. It makes each output only once, because an output costs Pulumi a
    task or two, and a thousand runs need the same few."""

    _filled: dict[str, pulumi.Input[str]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _together: dict[tuple[str, ...], pulumi.Output[dict[str, str]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def answers(self) -> Mapping[str, pulumi.Output[str]]:
        """The platform's references, by their names."""
        raise NotImplementedError

    def fill(self, text: str) -> pulumi.Input[str]:
        """A text of the plan, with the remaining references filled in by the platform's values."""
        if text not in self._filled:
            self._filled[text] = self._fill(text)
        return self._filled[text]

    def _fill(self, text: str) -> pulumi.Input[str]:
        if "${" not in text:
            return text
        wanted = tuple(name for name in self.answers if f"${{{name}}}" in text)
        if wanted not in self._together:
            self._together[wanted] = pulumi.Output.all(**{name: self.answers[name] for name in wanted})
        return self._together[wanted].apply(lambda values: expand_references(text, values))

    def environment(self, values: Mapping[str, EnvValue]) -> dict[str, pulumi.Input[str]]:
        return {
            name: pulumi.Output.secret(value.value or "") if isinstance(value, Secret) else self.fill(value)
            for name, value in values.items()
        }

    def document(self, value: Mapping[str, Any]) -> pulumi.Input[str]:
        # Every node's document is different, so there is nothing to cache.
        return self._fill(json.dumps(value, sort_keys=True, separators=(",", ":")))


# A separate folder for artifacts, for temporary stacks.
ARTIFACTS = "TRAINYARD_ARTIFACTS"
ARTIFACTS_FOLDER = Path(".trainyard", "artifacts")


# (folder, target folder, prefix of the name) -> the archive that was written.
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
    """Warns about links that are left out, which would otherwise be noticed only on the nodes. `code`: the job's
    folder."""
    if links := left_out_links(code):
        named = ", ".join(links[:5]) + (" …" if len(links) > 5 else "")
        warn_user(f"job {job}: links out of the code folder, or to folders, are left out: {named}")


def artifacts_folder() -> Path:
    """The folder for artifacts, relative to the program: the path is part of the job, and checkouts differ.

    If the checkout is read-only, such as a shared release, the folder is in the team's own repository.
    """
    if named := os.environ.get(ARTIFACTS):
        return Path(named)
    if os.access(ARTIFACTS_FOLDER if ARTIFACTS_FOLDER.exists() else ".", os.W_OK):
        return ARTIFACTS_FOLDER
    return Path(os.path.relpath(pulumi.runtime.get_root_directory())) / ARTIFACTS_FOLDER
