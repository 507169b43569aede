# SPDX-License-Identifier: Apache-2.0
"""The results of earlier `up`s: outputs and resources of this stack, and outputs that it takes from another one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pulumi

from components.messages import RefusedError
from components.plan.model import Plan
from schemas.findings import Wrong, at

Outputs = Mapping[str, Any]
T = TypeVar("T")
PROTECTED = (
    "It is protected, so Pulumi refuses to delete it. "
    "After `pulumi state unprotect` it stays as it is, but no longer belongs to this stack"
)


@dataclass(frozen=True)
class Recorded:
    """This stack's state before an `up`: the outputs of its resources, by URN."""

    resources: Mapping[str, Outputs]

    def one(self, kind: str, *names: str) -> Outputs:
        """The outputs of the first of these resources that exists, by the last word of its type. Empty if none
        exists."""
        urn = self.urn(kind, *names)
        return self.resources[urn] if urn else {}

    def urn(self, kind: str, *names: str) -> str | None:
        """The URN of the resource whose outputs `one` returns."""
        found = (urn for name in names for urn in self.resources if urn.endswith(f":{kind}::{name}"))
        return next(found, None)


def last_outputs() -> Outputs:
    """The outputs of this stack's last `up`. A program cannot read its own state otherwise."""
    return _invoke_engine("readStackOutputs", "name")


def recorded_resources() -> Mapping[str, Outputs]:
    """The outputs of each resource in this stack's state, by URN, including those of an `up` that failed or was
    killed."""
    rows = _invoke_engine("readStackResourceOutputs", "stackName")
    return {urn: row.get("outputs") or {} for urn, row in rows.items()}


def _invoke_engine(function: str, parameter: str) -> Outputs:
    """A function of the engine's own provider, for this stack."""
    stack = "/".join((pulumi.get_organization(), pulumi.get_project(), pulumi.get_stack()))
    try:
        answer: Any = pulumi.runtime.invoke(f"pulumi:pulumi:{function}", {parameter: stack}).value
    except Exception:  # Pulumi raises nothing more precise, and a new stack has none
        return {}
    return answer.get("outputs") or {}


def unless_refused(look: Callable[[], Iterable[T]]) -> list[T]:
    """The results of a lookup in the cloud. Empty if the cloud refuses it."""
    try:
        return list(look())
    except Exception:  # Pulumi raises nothing more precise for what a provider answers
        return []


def is_ours(plan: Plan, tags: Mapping[str, str] | None) -> bool:
    marks = {"managed-by": "trainyard", "stack": plan.stack}
    return marks.items() <= dict(tags or {}).items()


# Concern -> outputs of the other stack, which this stack uses.
TakenOutputs = Mapping[str, tuple[str, ...]]


class Borrowed:
    """Outputs of the stack under `uses`, for the concerns that this stack takes from it."""

    def __init__(self, plan: Plan, outputs: TakenOutputs) -> None:
        self._taken = plan.taken
        self._stack = None
        self._outputs: Mapping[str, Any] = {}
        if plan.uses:
            self._outputs = _require_outputs(plan, plan.uses, outputs)
            self._stack = pulumi.StackReference(plan.uses)

    def get(self, concern: str, output: str) -> pulumi.Output[str] | None:
        """An output of the other stack. None if this stack does not take that concern."""
        if self._stack is None or concern not in self._taken:
            return None
        return self._stack.require_output(output)

    def last(self, concern: str, output: str) -> str | None:
        """The same output, from the other stack's last `up`, without waiting for Pulumi."""
        return self._outputs.get(output) if concern in self._taken else None


def _require_outputs(plan: Plan, stack: str, needed: TakenOutputs) -> Mapping[str, Any]:
    """Reads the other stack immediately: a wrong reference must not stop the program half-way."""
    try:
        answer: Any = pulumi.runtime.invoke("pulumi:pulumi:readStackOutputs", {"name": stack}).value
    except Exception as problem:  # Pulumi raises nothing more precise
        message = f"the stack `{stack}` cannot be read: {str(problem).splitlines()[0].rpartition(': ')[2]}"
        remedy = "correct organization/project/stack; `pulumi stack ls --all` lists the stacks of this backend"
        raise RefusedError([Wrong(at("uses", "stack"), message, remedy)]) from None
    outputs: Mapping[str, Any] = answer.get("outputs") or {}
    taken = [concern for concern in plan.taken if concern != "logs" or plan.logs.enabled]
    if missing := [name for concern in taken for name in needed[concern] if name not in outputs]:
        message = f"the stack `{stack}` does not export {', '.join(f'`{name}`' for name in missing)}"
        remedy = f"bring it up first (`pulumi up -s {stack.rpartition('/')[2]}`), or `take` less of it"
        raise RefusedError([Wrong(at("uses", "take"), message, remedy)])
    return outputs
