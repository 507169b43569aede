# SPDX-License-Identifier: Apache-2.0
"""What a platform is told about each run of a plan, as YAML: for `trainyard plan --documents`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from catalog.platforms import Capability
from components.plan.model import Plan, RunPlan
from components.plan.show import to_plain_values
from schemas.model import EnvValue

_WIDTH = 120


class ImpossibleDocumentError(Exception):
    """A run that a form of documents cannot describe: the text says why."""


@dataclass(frozen=True, slots=True)
class PlanDocuments(Capability):
    """The document of a run, from a platform's own plan and job. Paths in the plan start at the stack file's folder.

    `forms`: for other programs that start runs there, by name, with notes on what such a document lacks."""

    place = "documents.PLAN_DOCUMENTS"
    lacking = "trainyard cannot print what {platform} is told yet"
    of_run: Callable[[Any, Any, RunPlan, Path], Mapping[str, Any]]
    forms: Mapping[str, Callable[[Any, Any, RunPlan, Path], tuple[Mapping[str, Any], Sequence[str]]]] = field(
        default_factory=dict
    )


class PlannedValues:
    """Fills in nothing: references stay as they are in the plan, and secrets as it shows them."""

    def fill(self, text: str) -> str:
        return text

    def environment(self, values: Mapping[str, EnvValue]) -> Mapping[str, Any]:
        shown: Mapping[str, Any] = to_plain_values(values)
        return shown

    def document(self, value: Mapping[str, Any]) -> Any:
        return to_plain_values(value)


PLANNED_VALUES = PlannedValues()


def run_documents(plan: Plan, documents: PlanDocuments, folder: Path) -> Mapping[str, Any]:
    """By `JOB/RUN`. Without inputs that are not set."""
    return {
        f"{name}/{key}": {part: value for part, value in to_plain_values(document).items() if value is not None}
        for name, job in plan.jobs.items()
        for key, run in job.runs.items()
        for document in [documents.of_run(plan, job, run, folder)]
    }


def run_documents_as(plan: Plan, documents: PlanDocuments, folder: Path, form: str) -> tuple[Mapping[str, Any], Any]:
    """The same in another form, and the notes on each run. Raises ImpossibleDocumentError."""
    made = {
        f"{name}/{key}": documents.forms[form](plan, job, run, folder)
        for name, job in plan.jobs.items()
        for key, run in job.runs.items()
    }
    of_runs = {name: to_plain_values(document) for name, (document, _) in made.items()}
    return of_runs, {name: notes for name, (_, notes) in made.items()}


def yaml_text(plan: Plan, documents: Mapping[str, Any], notes: Mapping[str, Sequence[str]] | None = None) -> str:
    """One YAML document for each run, below a comment with its name, and notes."""
    lines = []
    for name, document in documents.items():
        text = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
        lines += [f"---\n# {name}", *(f"#   {note}" for note in (notes or {}).get(name, ())), text.rstrip()]
    lines += [f"# {name} has no runs in the stack file" for name, job in plan.jobs.items() if not job.runs]
    return "\n".join(lines)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and nothing as a reference to another place."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)
