# SPDX-License-Identifier: Apache-2.0
"""A stack that takes from another of the same folder: whether that one has it, and is where it can be reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from schemas.checks.registry import Wrong, at
from schemas.load import region_key
from schemas.model import Stack, Uses
from schemas.names import listing

# A stack may well live in another folder: only a name that is nearly that of a neighbour is taken for a slip.
_SLIP = 0.9


@dataclass(frozen=True, slots=True)
class Beside:
    """What is known of a stack's folder: the stacks that were read, what the project and all its stacks are called."""

    stacks: Mapping[str, Stack]
    project: str
    names: Sequence[str]


def used(stack: Stack, uses: Uses, beside: Beside) -> Iterator[tuple[str, Wrong]]:
    """Code and finding of all that is wrong with `uses`, as far as the stacks of this folder tell."""
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
            message = f"the stack `{owner.name}`, which this one takes from, is {where} `{theirs}`, not `{ours}`"
            yield "TY716", Wrong(path, message, f"write `{key}: {theirs}`, or use a stack of `{ours}`")
            # Of another platform nothing else can be compared.
            return


def _not_shared(uses: Uses, owner: Stack) -> Iterator[tuple[str, Wrong]]:
    for index, concern in enumerate(uses.take):
        if concern == "logs" and not owner.logs.enabled:
            message = f"takes the logs of `{owner.name}`, which keeps none (`trainyard:logs: {{ enabled: false }}`)"
            yield "TY717", Wrong(at("uses", "take", index), message, "remove `logs` here, or enable them there")


def _round(stack: Stack, every: Mapping[str, Stack]) -> Iterator[tuple[str, Wrong]]:
    """A stack comes up after the one it takes from: in a circle none is first."""
    way, here = [stack.name], stack
    while here.uses and (name := here.uses.stack.rpartition("/")[2]) in every:
        way.append(name)
        if name == stack.name:
            remedy = "let one of them make what it takes"
            yield "TY718", Wrong(at("uses", "stack"), f"these take from one another: {listing(way)}", remedy)
        if way.count(name) > 1:
            return
        here = every[name]


def _slip(name: str, others: list[str]) -> Iterator[tuple[str, Wrong]]:
    from difflib import get_close_matches  # costs more to import than most files need

    for close in get_close_matches(name, others, n=1, cutoff=_SLIP):
        message = f"no stack of this folder is called `{name}`; one is called `{close}`"
        yield "TY719", Wrong(at("uses", "stack"), message, f"did you mean `{close}`? A stack kept elsewhere is fine")
