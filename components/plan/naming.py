# SPDX-License-Identifier: Apache-2.0
"""Physical names, tags, and the references a stack file may make."""

from __future__ import annotations

import re
from collections.abc import Mapping

from schemas.model import Stack

# The type of a run in Pulumi's state, for those who read states without Pulumi's SDK.
RUN_TYPE = "trainyard:index:Run"
REFERENCE = re.compile(r"\$\{([A-Za-z][A-Za-z0-9.-]*)\}")


def stack_tags(stack: Stack) -> dict[str, str]:
    """What every resource carries, so that people and bills can tell whose it is."""
    ours = {"stack": stack.name, "team": stack.team, "environment": stack.environment, "managed-by": "trainyard"}
    return {**stack.tags, **ours}


def plan_references(stack: Stack, job: str = "", run: str = "") -> dict[str, str]:
    """The references a plan answers itself."""
    values = {
        "team": stack.team,
        "environment": stack.environment,
        "stack": stack.name,
        "region": stack.region,
        "job": job,
        "run": run,
    }
    return {name: value for name, value in values.items() if value}


def expand(text: str, values: Mapping[str, str]) -> str:
    """`text` with its references filled in; those only a platform can answer stay as they are."""
    return REFERENCE.sub(lambda match: values.get(match[1], match[0]), text)
