# SPDX-License-Identifier: Apache-2.0
"""Which stacks depend on another: they use its outputs, or name what it makes. Read from states alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from components.platform.local import LocalPlatform
from components.platform.states import Row, State

_REFERENCE = "pulumi:pulumi:StackReference"
_OUTPUTS = "outputs"
_MOST_NAMED = 10


@dataclass(frozen=True)
class DependentStack:
    """A stack, and what it needs from the one that it depends on."""

    state: State
    on: tuple[str, ...]

    def __str__(self) -> str:
        if self.on == (_OUTPUTS,):
            return "takes its outputs (`uses`)"
        more = len(self.on) - _MOST_NAMED
        return f"needs {', '.join(self.on[:_MOST_NAMED])}" + (f" and {more} more" if more > 0 else "")


def dependent_stacks(
    own: State, others: Sequence[State], going: Sequence[Row], platform: LocalPlatform
) -> list[DependentStack]:
    """Those of `others` that would miss a resource that is `going`, or the outputs of the stack `own`."""
    candidates = (
        DependentStack(other, tuple(_on(own, other, going, platform))) for other in others if other is not own
    )
    return [dependent for dependent in candidates if dependent.on]


def _on(own: State, other: State, going: Sequence[Row], platform: LocalPlatform) -> Iterator[str]:
    if any(row["type"] == _REFERENCE and _names(row, own) for row in other.rows):
        yield _OUTPUTS
        return
    inputs = json.dumps([row.get("inputs") for row in other.made()])
    for row in going:
        if platform.is_named(row, own, other, inputs):
            yield platform.describe_resource(row)


def _names(reference: Row, own: State) -> bool:
    """`organization/project/stack`; a stack of the same project may be named alone."""
    *_, project, stack = f"{own.project}/{reference['inputs']['name']}".split("/")
    return (project, stack) == (own.project, own.stack)
