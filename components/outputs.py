# SPDX-License-Identifier: Apache-2.0
"""The results of this stack's last `up`: its outputs, and its resources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pulumi

from components.plan.model import Plan

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


def _stack() -> str:
    return "/".join((pulumi.get_organization(), pulumi.get_project(), pulumi.get_stack()))


def last_outputs() -> Outputs:
    """The outputs of this stack's last `up`. A program cannot read its own state otherwise."""
    return _read("readStackOutputs", "name")


def recorded_resources() -> Mapping[str, Outputs]:
    """The outputs of each resource in this stack's state, by URN, including those of an `up` that failed or was
    killed."""
    rows = _read("readStackResourceOutputs", "stackName")
    return {urn: row.get("outputs") or {} for urn, row in rows.items()}


def _read(function: str, parameter: str) -> Outputs:
    """A function of the engine's own provider, for this stack."""
    try:
        answer: Any = pulumi.runtime.invoke(f"pulumi:pulumi:{function}", {parameter: _stack()}).value
    except Exception:  # Pulumi raises nothing more precise, and a new stack has none
        return {}
    return answer.get("outputs") or {}


def unless_refused(look: Callable[[], Iterable[T]]) -> list[T]:
    """The results of a lookup in the cloud. None if the cloud refuses it."""
    try:
        return list(look())
    except Exception:  # Pulumi raises nothing more precise for what a provider answers
        return []


def is_ours(plan: Plan, tags: Mapping[str, str] | None) -> bool:
    marks = {"managed-by": "trainyard", "stack": plan.stack}
    return marks.items() <= dict(tags or {}).items()
