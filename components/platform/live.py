# SPDX-License-Identifier: Apache-2.0
"""The current state of a stack in its cloud, in the form of its program's inputs (`trainyard drift`).

The live side is the declared one with the cloud's current values, without missing resources, and with undeclared ones.
So both sides can be evaluated in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeVar

from catalog.platforms import Capability
from components.platform.calls import ProviderError
from components.platform.client import Where
from components.platform.review import ReviewedResource, Snapshot
from schemas.name_suggestions import count_noun

T = TypeVar("T")
Inputs = Mapping[str, Any]


@dataclass(frozen=True)
class StackClaim:
    """The tags of a resource say that another stack of trainyard made it. Whoever may tag a resource can say so.

    `state`: what that stack made, or None if no such stack is known. `is_trusted`: the caller knows that stack.
    """

    stack: str
    state: Snapshot | None
    is_trusted: bool

    def is_true(self, is_declared: Callable[[Snapshot], bool]) -> bool:
        return self.is_trusted or (self.state is not None and is_declared(self.state))

    @property
    def words(self) -> str:
        why = "which is not known here" if self.state is None else "whose last `up` did not make it so"
        return f"it says that it is of the stack {self.stack}, {why}"


@dataclass(frozen=True)
class LiveQuestion:
    """`declared`: the resources of the stack's last `up`, with their ids.

    `known`: principals with wide access by the account's own rules, such as `group Administrators`, and other stacks
    whose state is elsewhere, such as `stack speech-prod`. `state_of`: what another stack made, by its name.
    """

    declared: Snapshot
    where: Where
    known: tuple[str, ...] = ()
    state_of: Callable[[str], Snapshot | None] = lambda stack: None

    def claim_in(self, tags: Mapping[str, str]) -> StackClaim | None:
        """None if the tags name no other stack."""
        stack = tags.get("stack") or self.declared.stack
        if tags.get("managed-by") != "trainyard" or stack == self.declared.stack:
            return None
        return StackClaim(stack, self.state_of(stack), f"stack {stack}" in self.known)


@dataclass(frozen=True)
class LiveSide:
    """`declared` may have more than the question's, such as a machine's type from its template.

    `undeclared`: undeclared resources in words, by a made-up URN in `snapshot`. `judged`: inputs by type, such as
    policies, that are compared by meaning and not by text. `unread`: what could not be read, and why.
    """

    declared: Snapshot
    snapshot: Snapshot
    undeclared: Mapping[str, str] = field(default_factory=dict)
    judged: Mapping[str, frozenset[str]] = field(default_factory=dict)
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LiveReading(Capability):
    """Reads the current state of a stack from its cloud. A platform without it has runs only."""

    place = "client.live.LIVE_READING"
    read: Callable[[LiveQuestion], LiveSide]


@dataclass
class Reading:
    """Collects a live side. Resources that are not read are assumed to be as declared."""

    declared: Snapshot
    # Whether an error is a refusal for lack of permissions: then everything else is still read.
    is_refused: Callable[[BaseException | None], bool]
    _live: dict[str, ReviewedResource | None] = field(default_factory=dict)
    _expected: dict[str, Inputs] = field(default_factory=dict)
    _more: list[ReviewedResource] = field(default_factory=list)
    _undeclared: dict[str, str] = field(default_factory=dict)
    _unread: dict[str, None] = field(default_factory=dict)

    def record(self, resource: ReviewedResource, inputs: Inputs, expected: Inputs = MappingProxyType({})) -> None:
        """Records a declared resource that exists. `inputs`: the cloud's current values. An input that the program did
        not set, and that has no value, stays unset.

        `expected`: further inputs of the declared side.
        """
        self._expected[resource.urn] = expected
        values = {key: value for key, value in inputs.items() if value is not None or key in resource.inputs}
        self._live[resource.urn] = replace(resource, inputs={**resource.inputs, **values})

    def record_tags(self, resource: ReviewedResource, key: str, tags: Mapping[str, str]) -> None:
        """Records the current values of a recorded resource's declared tags."""
        now = self._live.get(resource.urn) or resource
        values = tags_that_matter(resource.inputs[key], tags)
        self._live[resource.urn] = replace(now, inputs={**now.inputs, key: values})

    def record_missing(self, resource: ReviewedResource) -> None:
        self._live[resource.urn] = None

    def present(
        self, declared: Iterable[ReviewedResource], there: Mapping[str, T]
    ) -> Iterator[tuple[ReviewedResource, T]]:
        """The resources that are there, by their ids, each with what the cloud has. Records the others as missing."""
        for resource in declared:
            if resource.id in there:
                yield resource, there[resource.id]
            else:
                self.record_missing(resource)

    def add(
        self, type_: str, identity: str, inputs: Inputs, words: str, parent: str = "", claim: StackClaim | None = None
    ) -> None:
        """Adds a resource that the stack did not declare. Without words, another finding mentions it. `claim`: what its
        tags claim, and what is not so."""
        urn = f"undeclared::{type_}::{identity}"
        if urn not in self._undeclared:
            self._more.append(ReviewedResource(type_, identity, urn, parent, inputs, id=identity))
            why = claim.words if claim else "no stack declares it"
            self._undeclared[urn] = f"{words}: {why}" if words else ""

    def unread(self, text: str) -> None:
        self._unread[text] = None

    def name_unread_types(self, read: Set[str]) -> None:
        """Names the types of the stack's resources that are not among those that the platform reads. Trainyard's own
        types are runs, which are compared by their states, and keys, which only the state has."""
        made = [one.type for one in self.declared.resources if one.custom and one.id]
        for type_ in sorted({*made} - read):
            if not type_.startswith("trainyard:"):
                count = count_noun(made.count(type_), "resource")
                self.unread(f"{count} of the type {type_}: a drift does not look at this type")

    def allowed(self, what: str, read: Callable[[], T]) -> T | None:
        """The result of a read. None if the caller has no permission, which is recorded."""
        try:
            return read()
        except ProviderError as error:
            if not self.is_refused(error.__cause__):
                raise
            # The cause begins with the name of the call, and ends with the id of the request.
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


def tags_that_matter(declared: Mapping[str, str], live: Mapping[str, str]) -> dict[str, str]:
    """The current values of the declared tags. Tags that clouds and companies add are left out."""
    return {key: live[key] for key in declared if key in live}
