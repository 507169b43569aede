# SPDX-License-Identifier: Apache-2.0
"""Checks of `uses`, if the other stack is in the same folder: does it have what is taken, in the same place?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from schemas.checks.registry import Wrong, at
from schemas.load import region_key
from schemas.model import Stack, Uses
from schemas.names import listing

# The other stack may be in another folder. Only a name that is nearly a neighbour's is a likely typing mistake.
_SLIP = 0.9


@dataclass(frozen=True, slots=True)
class Beside:
    """A stack's folder: the stacks that were loaded, the name of the project, and the names of all its stacks."""

    stacks: Mapping[str, Stack]
    project: str
    names: Sequence[str]


def check_uses(stack: Stack, uses: Uses, beside: Beside) -> Iterator[tuple[str, Wrong]]:
    """Code and finding of everything wrong with `uses`, as far as the stacks of this folder show it."""
    _, project, name = ("", "", *uses.stack.split("/"))[-3:]
    if project != beside.project or name == stack.name:
        return
    if name not in beside.names:
        yield from _slip(name, [other for other in beside.names if other != stack.name])
    elif owner := beside.stacks.get(name):
        yield from _elsewhere(stack, owner)
        yield from _not_shared(uses, owner)
        yield from _round(stack, beside.stacks)


def _elsewhere(stack: Stack, owner: Stack) -> Iterator[tuple[str, Wrong]]:
    region = ("config", region_key(stack.platform))
    places = [
        (at("platform"), "on the platform", "trainyard:platform", stack.platform, owner.platform),
        (region, "in the region", region[-1], stack.region, owner.region),
    ]
    for ours_at, theirs_at in zip(stack.place(), owner.place(), strict=False):
        key = ours_at.key
        places.append((at(key), ours_at.words, f"trainyard:{key}", ours_at.value or "", theirs_at.value or ""))
    for path, where, key, ours, theirs in places:
        if ours and theirs and ours != theirs:
            message = f"this stack takes from `{owner.name}`, which is {where} `{theirs}`, not `{ours}`"
            yield "TY716", Wrong(path, message, f"write `{key}: {theirs}`, or use a stack of `{ours}`")
            # On another platform, nothing else can be compared.
            return


def _not_shared(uses: Uses, owner: Stack) -> Iterator[tuple[str, Wrong]]:
    for index, concern in enumerate(uses.take):
        if concern == "logs" and not owner.logs.enabled:
            message = f"takes the logs of `{owner.name}`, which has none (`trainyard:logs: {{ enabled: false }}`)"
            yield "TY717", Wrong(at("uses", "take", index), message, "remove `logs` here, or enable them there")


def _round(stack: Stack, every: Mapping[str, Stack]) -> Iterator[tuple[str, Wrong]]:
    """A stack comes up after the one that it takes from. In a circle, no stack can come up first."""
    way, here = [stack.name], stack
    while here.uses and (name := here.uses.stack.rpartition("/")[2]) in every:
        way.append(name)
        if name == stack.name:
            remedy = "let one of them make its own instead of taking it"
            yield "TY718", Wrong(at("uses", "stack"), f"these take from one another: {listing(way)}", remedy)
        if way.count(name) > 1:
            return
        here = every[name]


def _slip(name: str, others: list[str]) -> Iterator[tuple[str, Wrong]]:
    from difflib import get_close_matches  # costs more to import than most files need

    for close in get_close_matches(name, others, n=1, cutoff=_SLIP):
        message = f"no stack in this folder is called `{name}`, but one is called `{close}`"
        yield (
            "TY719",
            Wrong(at("uses", "stack"), message, f"did you mean `{close}`? If the stack is kept elsewhere, leave it"),
        )
