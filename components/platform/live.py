# SPDX-License-Identifier: Apache-2.0
"""A stack as its cloud has it now, in the words in which its program asked for it (`trainyard drift`).

The live side is the declared one with what the cloud says in place of the inputs, without what is gone, and with what
nobody declared. So both sides are evaluated alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeVar

from components.platform.calls import ProviderError
from components.platform.client import Where
from components.platform.review import ReviewedResource, Snapshot

T = TypeVar("T")
Inputs = Mapping[str, Any]


@dataclass(frozen=True)
class LiveQuestion:
    """`declared`: what the stack's last `up` asked for, with the ids that the cloud gave.

    `known`: principals whose wide access is the account's own order: `group Administrators`.
    """

    declared: Snapshot
    where: Where
    known: tuple[str, ...] = ()


@dataclass(frozen=True)
class LiveSide:
    """`declared` may say more than the question's: that a machine is of the type that its template names.

    `undeclared`: what nobody declared, in words, by the URN of its resource in `snapshot`, which is its own. `judged`:
    by type, inputs whose meaning is evaluated, so that a text that differs says nothing by itself. `unread`: what could
    not be read, and why.
    """

    declared: Snapshot
    snapshot: Snapshot
    undeclared: Mapping[str, str] = field(default_factory=dict)
    judged: Mapping[str, frozenset[str]] = field(default_factory=dict)
    unread: tuple[str, ...] = ()


@dataclass
class Reading:
    """Collects a live side. What nobody reads is taken to be as it was declared."""

    declared: Snapshot
    # Whether a refusal is one for lack of rights: then the rest is read all the same.
    is_refused: Callable[[BaseException | None], bool]
    _live: dict[str, ReviewedResource | None] = field(default_factory=dict)
    _expected: dict[str, Inputs] = field(default_factory=dict)
    _more: list[ReviewedResource] = field(default_factory=list)
    _undeclared: dict[str, str] = field(default_factory=dict)
    _unread: dict[str, None] = field(default_factory=dict)

    def found(self, resource: ReviewedResource, inputs: Inputs, expected: Inputs = MappingProxyType({})) -> None:
        """`inputs`: those that the cloud tells. One that the program left open stays open if it has no value.

        `expected`: what the declared side says of the same beside its inputs.
        """
        self._expected[resource.urn] = expected
        told = {key: value for key, value in inputs.items() if value is not None or key in resource.inputs}
        self._live[resource.urn] = replace(resource, inputs={**resource.inputs, **told})

    def gone(self, resource: ReviewedResource) -> None:
        self._live[resource.urn] = None

    def add(self, type_: str, identity: str, inputs: Inputs, words: str, parent: str = "") -> None:
        """Something that is there and that the stack did not declare. Without words it is told by something else."""
        urn = f"undeclared::{type_}::{identity}"
        if urn not in self._undeclared:
            self._more.append(ReviewedResource(type_, identity, urn, parent, inputs, id=identity))
            self._undeclared[urn] = words

    def unread(self, text: str) -> None:
        self._unread[text] = None

    def allowed(self, what: str, read: Callable[[], T]) -> T | None:
        """The answer of a read. None where the caller has no right to it, which is kept."""
        try:
            return read()
        except ProviderError as error:
            if not self.is_refused(error.__cause__):
                raise
            # The cause repeats what was tried, and ends with the number of the request.
            why = error.cause.partition(": ")[2].partition(" [")[0]
            self.unread(f"{what}: {why or error.cause}")
            return None

    def side(self, judged: Mapping[str, frozenset[str]]) -> LiveSide:
        there = (self._live.get(one.urn, one) for one in self.declared.resources)
        kept = tuple(one for one in there if one is not None)
        snapshot = replace(self.declared, resources=(*kept, *self._more))
        declared = (
            replace(one, inputs={**one.inputs, **self._expected.get(one.urn, {})}) for one in self.declared.resources
        )
        return LiveSide(
            replace(self.declared, resources=tuple(declared)), snapshot, self._undeclared, judged, tuple(self._unread)
        )


def tags_of(declared: Mapping[str, str], live: Mapping[str, str]) -> dict[str, str]:
    """The declared tags as they are now. Clouds and companies add tags of their own."""
    return {key: live[key] for key in declared if key in live}


def foreign_stack(tags: Mapping[str, str], stack: str) -> bool:
    """Whether something says that another stack of trainyard made it: that one's file declares it."""
    return tags.get("managed-by") == "trainyard" and tags.get("stack") not in (None, "", stack)
