# SPDX-License-Identifier: Apache-2.0
"""The values of references that a plan leaves to AWS, and what is deployed of a node, without secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from components.plan.model import NodePlan
from components.plan.naming import expand
from components.platform.overlay import Overlay
from components.platform.starting_tries import filled
from schemas.model import EnvValue, Secret

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
        return filled("its image", text, self.values)

    def environment(self, values: Mapping[str, EnvValue]) -> Mapping[str, Any]:
        return {name: filled(name, value, self.values) for name, value in values.items() if isinstance(value, str)}

    def document(self, value: Mapping[str, Any]) -> str:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
        return filled("its launch document", text, self.values)
