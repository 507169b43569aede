# SPDX-License-Identifier: Apache-2.0
"""What other stacks declared, by their states: a resource's tags only claim that another stack made it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from components.platform.local import PROJECT_NAME, stack_states_folder, states_in
from components.platform.review import Snapshot
from trainyard.drift.declared import DriftError, export_state, snapshot_of_state

# A name without an organization or a project: whoever writes tags could own a stack in another one.
_STACK_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
StateOf = Callable[[str], Snapshot | None]


def local_stack_states(cloud_home: Path, platform: str) -> StateOf:
    """The stacks in the Pulumi backend beside a local cloud."""

    @cache
    def states() -> dict[str, Snapshot]:
        own = (one for one in states_in(stack_states_folder(cloud_home)) if one.project == PROJECT_NAME)
        return {one.stack: snapshot_of_state(one.rows, one.stack, platform) for one in own if any(one.made())}

    return lambda stack: states().get(stack)


def exported_stack_states(file: Path, platform: str) -> StateOf:
    """The stacks in the backend that the caller uses for the project of the stack file."""

    @cache
    def state_of(stack: str) -> Snapshot | None:
        if not _STACK_NAME.fullmatch(stack):
            return None
        try:
            rows = json.loads(export_state(stack, file))["deployment"]["resources"]
            return snapshot_of_state(rows, stack, platform)
        except (DriftError, ValueError, KeyError, TypeError, AttributeError):
            return None  # no such stack, or nothing of it is up

    return state_of
