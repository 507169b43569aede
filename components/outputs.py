# SPDX-License-Identifier: Apache-2.0
"""What the last `up` of this stack left: its outputs, and whose a thing is by its tags."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pulumi

from components.plan.model import Plan
from schemas.checks.registry import Wrong

Outputs = Mapping[str, Any]
PROTECTED = (
    "It is protected, so Pulumi refuses to delete it. "
    "After `pulumi state unprotect` it stays as it is, but no longer belongs to this stack"
)


def _stack() -> str:
    return "/".join((pulumi.get_organization(), pulumi.get_project(), pulumi.get_stack()))


def last_outputs() -> Outputs:
    """The outputs of this stack's last `up`. A program cannot read its own state otherwise."""
    try:
        answer: Any = pulumi.runtime.invoke("pulumi:pulumi:readStackOutputs", {"name": _stack()}).value
    except Exception:  # Pulumi raises nothing more precise, and a new stack has none
        return {}
    return answer.get("outputs") or {}


def recorded_resources() -> Mapping[str, Outputs]:
    """The outputs of each resource in this stack's state, by URN: also what an `up` made that failed or was killed."""
    try:
        answer: Any = pulumi.runtime.invoke("pulumi:pulumi:readStackResourceOutputs", {"stackName": _stack()}).value
    except Exception:  # Pulumi raises nothing more precise, and a new stack has none
        return {}
    return {urn: row.get("outputs") or {} for urn, row in (answer.get("outputs") or {}).items()}


def unless_refused(look: Callable[[], Iterable[Wrong]]) -> list[Wrong]:
    """What a look-up in the cloud finds. Nothing if the cloud refuses it."""
    try:
        return list(look())
    except Exception:  # Pulumi raises nothing more precise for what a provider answers
        return []


def is_ours(plan: Plan, tags: Mapping[str, str] | None) -> bool:
    marks = {"managed-by": "trainyard", "stack": plan.stack}
    return marks.items() <= dict(tags or {}).items()
