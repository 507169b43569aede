# SPDX-License-Identifier: Apache-2.0
"""A try: the user's request, its plan from the stack file, and the merge of that plan with the deployed run."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.plan.model import REFERENCE, JobPlan, NodePlan, Plan, RunPlan, expand_references
from components.platform.values import Properties
from schemas.model import EnvValue, Secret

# The prefix of a try's name. The user's name or random letters follow.
PREFIX = "try-"
_BYTES = 3
LAUNCH = "TRAINYARD_LAUNCH"
Fill = Callable[[str], str]
Environment = Mapping[str, str]
# Parts of a launch document, and the key of the stack file that sets each. All other parts follow from the framework.
KEYS = {
    "command": "command", "role": "roles", "roles": "roles", "retry": "roles", "ports": "ports", "options": "options",
    "processes": "options", "secrets": "env", "stallMinutes": "stallMinutes", "job": "was", "run": "was",
    "folder": "bucket", "checkpoints": "bucket", "attempt": "attempt",
}  # fmt: skip


class TryError(Exception):
    """A try that cannot be started. The text says why and what to do."""


class ChangedError(TryError):
    """The stack file differs from the deployed stack. `fields` are the differing keys that matter to the job."""

    def __init__(self, fields: tuple[str, ...]) -> None:
        super().__init__(", ".join(fields))
        self.fields = fields


@dataclass(frozen=True)
class WantedTry:
    """The user's request. `args` None: those of the repeated run. `run` None: the job's first run, if it has one."""

    job: str
    run: str | None = None
    name: str = ""
    args: tuple[str, ...] | None = None
    env: Mapping[str, EnvValue] | None = None


@dataclass(frozen=True)
class PlannedTry:
    """The try's plan, and `like`, the plan of the run that it repeats: None in a job without runs. Both are made from
    the stack file."""

    plan: Plan
    job: JobPlan
    like: RunPlan | None
    run: RunPlan

    @property
    def title(self) -> str:
        return f"{self.job.name}/{self.run.name}"


@dataclass(frozen=True)
class ReadyTry:
    """Everything that a start needs. `changes`: the differences between the stack file and the deployed run."""

    planned: PlannedTry
    inputs: Mapping[str, Any]
    changes: tuple[str, ...]


def new_name() -> str:
    return PREFIX + secrets.token_hex(_BYTES)


def fill_references_of_try(what: str, text: str, values: Mapping[str, str]) -> str:
    """The text with placeholders filled in. Raises TryError if the deployed stack lacks a value."""
    made = expand_references(text, values)
    if left := REFERENCE.search(made):
        raise TryError(
            f"{what} names {left[0]}, which is known once the job has a run: add one to the stack file first"
        )
    return made


@dataclass(frozen=True)
class Overlay:
    """Merges the try's plan with deployed variables. `open_text` matches placeholders, which may have any value in the
    deployed ones. `fill` fills them in."""

    open_text: re.Pattern[str]
    fill: Fill

    def apply(self, deployed: Environment, like: NodePlan, own: NodePlan) -> dict[str, str]:
        """The variables of one node of the try."""
        made = dict(deployed)
        for name in _differing_names(like.environment, own.environment):
            if name in like.environment and not self.fits(like.environment[name], deployed.get(name)):
                raise TryError(_cannot_tell(name))
            made.pop(name, None)
            if name in own.environment:
                value = own.environment[name]
                made[name] = value.value or "" if isinstance(value, Secret) else self.fill(value)
        document = _launch_document_of_try(deployed)
        for key in _differing_names(like.launch, own.launch):
            if not self._same(like.launch.get(key), document.get(key)):
                raise TryError(_cannot_tell(KEYS.get(key, key)))
            document[key] = json.loads(self.fill(json.dumps(own.launch[key])))
        return {**made, LAUNCH: json.dumps(document, sort_keys=True, separators=(",", ":"))}

    def differences(self, deployed: Environment, like: NodePlan) -> Iterator[str]:
        """Keys of the stack file whose values differ from this deployed node."""
        variables = {name: value for name, value in deployed.items() if name != LAUNCH}
        for name in sorted({*variables, *like.environment}):
            if name not in like.environment or not self.fits(like.environment[name], variables.get(name)):
                yield f"env.{name}"
        document = _launch_document_of_try(deployed)
        for key in sorted({*document, *like.launch}):
            if not self._same(like.launch.get(key), document.get(key)):
                yield KEYS.get(key, "framework")

    def fits(self, planned: EnvValue, deployed: str | None) -> bool:
        """Whether the plan's text may have become the deployed one. A secret always may: it cannot be read here."""
        if deployed is None or isinstance(planned, Secret):
            return deployed is not None
        if planned == deployed:
            return True
        pattern = ".*".join(re.escape(part) for part in self.open_text.split(planned))
        return self.open_text.search(planned) is not None and re.fullmatch(pattern, deployed, re.DOTALL) is not None

    def _same(self, planned: Any, deployed: Any) -> bool:
        if isinstance(planned, str) and isinstance(deployed, str):
            return self.fits(planned, deployed)
        if isinstance(planned, Mapping) and isinstance(deployed, Mapping):
            return planned.keys() == deployed.keys() and all(self._same(planned[key], deployed[key]) for key in planned)
        if isinstance(planned, Sequence) and isinstance(deployed, Sequence) and not isinstance(planned, str):
            return len(planned) == len(deployed) and all(map(self._same, planned, deployed))
        return bool(planned == deployed)


@dataclass(frozen=True)
class PlanFiller:
    """Fills in the references of a job without runs, which has no deployed run to repeat."""

    values: Mapping[str, str]

    def fill(self, text: str) -> str:
        return fill_references_of_try("its image", text, self.values)

    def environment(self, values: Mapping[str, EnvValue]) -> Mapping[str, Any]:
        return {name: self._text(name, value) for name, value in values.items()}

    def document(self, value: Mapping[str, Any]) -> str:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
        return fill_references_of_try("its launch document", text, self.values)

    def _text(self, name: str, value: EnvValue) -> str:
        if not isinstance(value, Secret):
            return fill_references_of_try(name, value, self.values)
        if value.value is None:
            raise TryError(
                f"`{name}` is a secret that only the stack's own key opens, and no run of the job has it yet: "
                f"give it with `--env {name}=…`, or add a run to the stack file"
            )
        return value.value


def refuse_taken_name(planned: PlannedTry, runs: Iterable[str | None]) -> None:
    """`runs`: the names of those of the job that were started before. Two of one name would share their checkpoints and
    their line in `trainyard runs`."""
    if planned.run.name in set(runs):
        raise TryError(f"there was a try {planned.title} already: give this one another --name, or none")


def repeat_deployed_run(
    planned: PlannedTry,
    deployed: Properties,
    overlay: Overlay,
    variables: Callable[[Mapping[str, Any]], Environment],
    plain: Callable[[NodePlan], NodePlan] = lambda node: node,
) -> Properties:
    """The inputs of the deployed run, with the changes of the try. `variables`: those of a deployed node. `plain`: what
    of a planned node they show."""
    like = {node.name: plain(node) for node in planned.like.nodes} if planned.like else {}
    own = {node.name: plain(node) for node in planned.run.nodes}
    nodes = []
    for node in deployed["nodes"]:
        if node["name"] not in own or node["name"] not in like:
            raise TryError(f"the node {node['name']} is deployed, but no longer in the stack file")
        made = overlay.apply(variables(node), like[node["name"]], own[node["name"]])
        nodes.append({**node, "environment": made})
    tags = {**deployed.get("tags", {}), "run": planned.run.name}
    shown = {"displayName": planned.run.display_name, "tags": tags, "expects": planned.job.expects}
    return {**deployed, **shown, "nodes": nodes, "attempt": 1, "until": "accepted"}


def _differing_names(like: Mapping[str, Any], own: Mapping[str, Any]) -> list[str]:
    return sorted(key for key in {*like, *own} if key not in like or key not in own or like[key] != own[key])


def _launch_document_of_try(deployed: Environment) -> dict[str, Any]:
    try:
        document = json.loads(deployed.get(LAUNCH, ""))
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise TryError("the deployed run has no launch document: it was not started by trainyard")
    return document


def _cannot_tell(what: str) -> str:
    return (
        f"`{what}` has changed in the stack file since the last `up`, and the try changes it too, so it is unclear "
        "which parts of the old value to keep. Run `up` first: it deploys the change."
    )
