# SPDX-License-Identifier: Apache-2.0
"""The values of references that a plan leaves to AWS, and what is deployed of a node, without secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from components.plan.model import NodePlan
from components.plan.naming import REFERENCE, expand
from schemas.model import EnvValue, Secret
from tries.model import TryError
from tries.overlay import Overlay

# References of a plan that only AWS fills in.
_OPEN_TEXT = re.compile(r"\$\{[^}]*\}")


def overlay_with(values: Mapping[str, str]) -> Overlay:
    return Overlay(_OPEN_TEXT, lambda text: expand(text, values))


# It only compares.
OVERLAY = overlay_with({})


def environment_of(node: Mapping[str, Any]) -> dict[str, str]:
    """The variables of a deployed node. Anybody may have written the ticket."""
    values = node.get("environment")
    return {str(name): str(value) for name, value in values.items()} if isinstance(values, Mapping) else {}


def without_secrets(node: NodePlan) -> NodePlan:
    """Secret variables are in the secret of the run, and in no ticket."""
    plain = {name: value for name, value in node.environment.items() if not isinstance(value, Secret)}
    return replace(node, environment=plain)


@dataclass(frozen=True)
class PlanFiller:
    """`components.aws_dl1.run_inputs.RunFiller` for a job without runs: there is nothing deployed to repeat."""

    values: Mapping[str, str]

    def fill(self, text: str) -> str:
        return self._filled("its image", text)

    def environment(self, values: Mapping[str, EnvValue]) -> Mapping[str, Any]:
        return {name: self._filled(name, value) for name, value in values.items() if isinstance(value, str)}

    def document(self, value: Mapping[str, Any]) -> str:
        return self._filled("its launch document", json.dumps(value, sort_keys=True, separators=(",", ":")))

    def _filled(self, what: str, text: str) -> str:
        made = expand(text, self.values)
        if left := REFERENCE.search(made):
            raise TryError(
                f"{what} names {left[0]}, which is known once the job has a run: add one to the stack file first"
            )
        return made
