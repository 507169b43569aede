# SPDX-License-Identifier: Apache-2.0
"""What a cloud has whose tags say that trainyard made it, with or without a state (`trainyard drift --orphans`).

Whoever may tag a resource can write these tags, so they are a claim. Only a state proves it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from catalog.machines import Price
from catalog.platforms import Capability
from components.platform.calls import Call, ProviderError
from components.platform.client import Where

MANAGED_BY, STACK = "managed-by", "stack"
# The tags that trainyard gives to everything that it makes (components/plan/model.py).
OUR_TAGS = (MANAGED_BY, STACK, "team", "environment")
FREE = Price(0.0, "free by the hour")


def is_claimed(tags: Mapping[str, str]) -> bool:
    """Whether the tags say that trainyard made the resource, for some stack."""
    return tags.get(MANAGED_BY) == "trainyard" and bool(tags.get(STACK))


@dataclass(frozen=True)
class OwnedResource:
    """`token`: its type in states, empty if trainyard makes no such resource. `ids`: the ids by which a state may have
    it. `within`: the id of a resource with which it goes, and which owns it in states: the job of a run.

    `content`: what `up` did not put into it, in words, such as `3 objects`. `since`: None if the cloud does not say.
    """

    token: str
    ids: tuple[str, ...]
    words: str
    tags: Mapping[str, str]
    place: str
    since: datetime | None = None
    owner: str = ""
    cost: Price = FREE
    within: str = ""
    content: str = ""

    @property
    def id(self) -> str:
        return self.ids[0]

    @property
    def stack(self) -> str:
        return self.tags[STACK]

    @property
    def has_all_tags(self) -> bool:
        return all(self.tags.get(name) for name in OUR_TAGS)


@dataclass(frozen=True)
class OwnedReading:
    """`unread`: what could not be asked, and why."""

    resources: tuple[OwnedResource, ...]
    unread: tuple[str, ...] = ()


@dataclass(frozen=True)
class OwnedQuestion:
    """`where.place`: only what is there. `stack`: only what has this stack's tag. `prices`: a team's own."""

    where: Where
    stack: str | None = None
    prices: Mapping[str, Any] = field(default_factory=dict)

    def wants(self, tags: Mapping[str, str]) -> bool:
        return is_claimed(tags) and self.stack in (None, tags[STACK])


class RemovalRefusedError(Exception):
    """The cloud does not delete a resource, because something else uses it. The text is the cloud's."""


# Deletes one resource, and waits until it is gone. Raises RemovalRefusedError or ProviderError.
DeleteOwned = Callable[[Call, OwnedResource], None]


@dataclass(frozen=True, slots=True)
class OwnedResources(Capability):
    """Finds and removes what trainyard made, by its tags."""

    place = "client.owned.OWNED_RESOURCES"
    lacking = "{platform} cannot list resources by their tags"
    find: Callable[[OwnedQuestion], OwnedReading]
    # Makes the function that deletes one of the resources that `find` returned.
    deleter: Callable[[OwnedQuestion], DeleteOwned]


# How long a resource may be refused while nothing else is left to delete: a cloud notices late what is gone.
_PATIENCE = 60.0
_PAUSE = 2.0


def delete_in_turn(
    call: Call, resources: Sequence[OwnedResource], delete: DeleteOwned, patience: float = _PATIENCE
) -> Iterator[tuple[OwnedResource, str]]:
    """Deletes the resources, and yields each with the reason why it is still there, empty if it is gone.

    The newest go first: a resource needs only older ones, so this is the order of `down`. What is refused because
    something else uses it is tried again as long as others go.
    """
    never = datetime.min.replace(tzinfo=None)
    waiting = sorted(resources, key=lambda one: one.since.replace(tzinfo=None) if one.since else never, reverse=True)
    last_gone = time.monotonic()
    while waiting:
        refused: list[tuple[OwnedResource, str]] = []
        for resource in waiting:
            try:
                delete(call, resource)
            except RemovalRefusedError as error:
                refused.append((resource, str(error)))
                continue
            except ProviderError as error:
                yield resource, error.cause
                continue
            last_gone = time.monotonic()
            yield resource, ""
        if len(refused) == len(waiting):
            if time.monotonic() - last_gone > patience:
                yield from refused
                return
            call.stop.wait(_PAUSE)
        waiting = [resource for resource, _ in refused]
