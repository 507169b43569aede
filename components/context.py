# SPDX-License-Identifier: Apache-2.0
"""What the components of every platform need: the plan's references, filled in with values that only the platform
knows, and the outputs of another stack that this one uses."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi

from components.plan.model import Plan, expand
from components.refusal import RefusedError
from schemas.checks.registry import Wrong, at
from schemas.model import EnvValue, Secret

# Concern -> outputs of the other stack, which this stack uses.
TakenOutputs = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Filler:
    """Each output costs Pulumi a task or two, and a thousand runs need the same few. So each is made only once."""

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
        return self._together[wanted].apply(lambda values: expand(text, values))

    def environment(self, values: Mapping[str, EnvValue]) -> dict[str, pulumi.Input[str]]:
        return {
            name: pulumi.Output.secret(value.value or "") if isinstance(value, Secret) else self.fill(value)
            for name, value in values.items()
        }

    def document(self, value: Mapping[str, Any]) -> pulumi.Input[str]:
        # Every node's document is different, so there is nothing to cache.
        return self._fill(json.dumps(value, sort_keys=True, separators=(",", ":")))


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
    """Reads the other stack at once: a wrong reference must not stop the program when half of it has run."""
    try:
        answer: Any = pulumi.runtime.invoke("pulumi:pulumi:readStackOutputs", {"name": stack}).value
    except Exception as problem:  # Pulumi raises nothing more precise
        message = f"the stack `{stack}` cannot be read: {str(problem).splitlines()[0].rpartition(': ')[2]}"
        remedy = "correct organization/project/stack; `pulumi stack ls --all` lists the stacks of this backend"
        raise RefusedError([Wrong(at("uses", "stack"), message, remedy)]) from None
    outputs: Mapping[str, Any] = answer.get("outputs") or {}
    if missing := _missing(plan, needed, outputs):
        message = f"the stack `{stack}` does not export {', '.join(f'`{name}`' for name in missing)}"
        remedy = f"bring it up first (`pulumi up -s {stack.rpartition('/')[2]}`), or `take` less of it"
        raise RefusedError([Wrong(at("uses", "take"), message, remedy)])
    return outputs


def _missing(plan: Plan, needed: TakenOutputs, outputs: Collection[str]) -> list[str]:
    taken = [concern for concern in plan.taken if concern != "logs" or plan.logs.enabled]
    return [name for concern in taken for name in needed[concern] if name not in outputs]
