# SPDX-License-Identifier: Apache-2.0
"""Which stacks lean on another: they use its outputs, or name what it makes. Read from states alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from localstacks.states import BUCKET, DYNAMIC_GROUP, REPOSITORY, Row, State, described, name_of
from schemas.names import is_ocid

_REFERENCE = "pulumi:pulumi:StackReference"
# What other stacks name by its name rather than by its OCID, and the output that shows it.
_NAMED = {BUCKET: "bucket", REPOSITORY: "imagePushAddress", DYNAMIC_GROUP: "runsGroup"}
_OUTPUTS = "outputs"
_MOST_NAMED = 10


@dataclass(frozen=True)
class Leaner:
    """A stack, and what it has of the one it leans on."""

    state: State
    on: tuple[str, ...]

    def __str__(self) -> str:
        if self.on == (_OUTPUTS,):
            return "takes its outputs (`uses`)"
        more = len(self.on) - _MOST_NAMED
        return f"needs {', '.join(self.on[:_MOST_NAMED])}" + (f" and {more} more" if more > 0 else "")


def leaners(own: State, others: Sequence[State], going: Sequence[Row]) -> list[Leaner]:
    """Those of `others` that would miss a resource that is `going`, or the outputs of the stack `own`."""
    found = (Leaner(other, tuple(_on(own, other, going))) for other in others if other is not own)
    return [leaner for leaner in found if leaner.on]


def _on(own: State, other: State, going: Sequence[Row]) -> Iterator[str]:
    if any(row["type"] == _REFERENCE and _names(row, own) for row in other.rows):
        yield _OUTPUTS
        return
    inputs = json.dumps([row.get("inputs") for row in other.made()])
    outputs = other.outputs() if any(other.made()) else {}
    for row in going:
        by_ocid = is_ocid(row["id"]) and row["id"] in inputs
        if by_ocid or _is(str(outputs.get(_NAMED.get(row["type"], ""), "")), row):
            yield described(row)


def _names(reference: Row, own: State) -> bool:
    """`organization/project/stack`; a stack of the same project may be named alone."""
    *_, project, stack = f"{own.project}/{reference['inputs']['name']}".split("/")
    return (project, stack) == (own.project, own.stack)


def _is(output: str, row: Row) -> bool:
    """An address of images is host, namespace and repository."""
    return (output.split("/", 2)[-1] if row["type"] == REPOSITORY else output) == name_of(row)
