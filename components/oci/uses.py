# SPDX-License-Identifier: Apache-2.0
"""Values that come from another stack of trainyard: what it exports, by concern."""

from __future__ import annotations

import pulumi

from components.plan.model import Plan


class Borrowed:
    """Answers from the stack named under `uses`, for the concerns it was asked to answer for."""

    def __init__(self, plan: Plan) -> None:
        self._taken = plan.taken
        self._stack = pulumi.StackReference(plan.uses) if plan.uses else None

    def get(self, concern: str, output: str) -> pulumi.Output[str] | None:
        """None where this stack answers for itself."""
        if self._stack is None or concern not in self._taken:
            return None
        return self._stack.require_output(output)
