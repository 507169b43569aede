# SPDX-License-Identifier: Apache-2.0
"""Values that come from another stack of trainyard: what it exports, by concern."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pulumi

from components.oci.plan import OciPlan
from components.refusal import RefusedError
from schemas.checks.registry import Wrong, at

# What this stack takes of another for each concern, by the names of its outputs.
TAKEN = {
    "network": ("subnetId",),
    "access": ("runsGroup",),
    "bucket": ("bucket",),
    "registry": ("imagePushAddress",),
    "logs": ("logGroupId", "logId"),
    "project": ("projectId",),
}


class Borrowed:
    """Answers from the stack named under `uses`, for the concerns it was asked to answer for."""

    def __init__(self, plan: OciPlan) -> None:
        self._taken = plan.taken
        self._stack = None
        if plan.uses:
            _must_answer(plan, plan.uses)
            self._stack = pulumi.StackReference(plan.uses)

    def get(self, concern: str, output: str) -> pulumi.Output[str] | None:
        """None where this stack answers for itself."""
        if self._stack is None or concern not in self._taken:
            return None
        return self._stack.require_output(output)


def _must_answer(plan: OciPlan, stack: str) -> None:
    """Asked for at once: a reference that leads nowhere would end the program in its midst."""
    try:
        answer: Any = pulumi.runtime.invoke("pulumi:pulumi:readStackOutputs", {"name": stack}).value
    except Exception as problem:  # Pulumi raises nothing more precise
        message = f"the stack `{stack}` cannot be read: {str(problem).splitlines()[0].rpartition(': ')[2]}"
        remedy = "correct organization/project/stack; `pulumi stack ls --all` lists those of this backend"
        raise RefusedError([Wrong(at("uses", "stack"), message, remedy)]) from None
    if missing := _missing(plan, answer.get("outputs") or {}):
        message = f"the stack `{stack}` exports no {', '.join(f'`{name}`' for name in missing)}"
        remedy = f"bring it up first (`pulumi up -s {stack.rpartition('/')[2]}`), or `take` less of it"
        raise RefusedError([Wrong(at("uses", "take"), message, remedy)])


def _missing(plan: OciPlan, outputs: Collection[str]) -> list[str]:
    taken = [concern for concern in plan.taken if concern != "logs" or plan.logs.enabled]
    return [name for concern in taken for name in TAKEN[concern] if name not in outputs]
