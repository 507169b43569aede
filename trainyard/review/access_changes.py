# SPDX-License-Identifier: Apache-2.0
"""Which principals gain or lose which permissions: the difference of their abilities, in few sentences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from components.platform.circumstances import OTHER
from components.platform.review import EVERYBODY, Ability, ReviewPlatform

# The platforms' word for all resources.
_EVERYTHING = "everything"


@dataclass(frozen=True, slots=True, order=True)
class AccessChange:
    """`words`: what the principal may do now, or could do before. `resource`: on what. Both are texts."""

    principal: str
    words: str
    resource: str
    gained: bool
    operations: tuple[str, ...]

    @property
    def sentence(self) -> str:
        return access_sentence(self.principal, self.words, self.resource, self.gained)


def access_sentence(principal: str, words: str, resource: str, gained: bool) -> str:
    """`role nodes may read objects: bucket pictures`."""
    on = f": {resource}" if resource else ""
    if resource == _EVERYTHING:
        on = "" if _EVERYTHING in words else f", on {_EVERYTHING}"
    return f"{principal} {'may' if gained else 'may no longer'} {words}{on}"


def compare_abilities(
    before: frozenset[Ability], after: frozenset[Ability], platform: ReviewPlatform
) -> tuple[AccessChange, ...]:
    """Gains come first, then losses. What everybody gains or loses is not repeated for single principals."""
    gained = _describe_abilities(after - before, True, platform)
    lost = _describe_abilities(before - after, False, platform)
    return (*sorted(gained), *sorted(lost))


def _describe_abilities(
    abilities: frozenset[Ability], gained: bool, platform: ReviewPlatform
) -> Iterator[AccessChange]:
    by_principal: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for ability in abilities:
        if ability.principal == EVERYBODY or replace(ability, principal=EVERYBODY) not in abilities:
            by_principal[ability.principal][ability.resource].add(ability.operation)
    for principal, resources in by_principal.items():
        alike: dict[frozenset[str], set[str]] = defaultdict(set)
        for resource, operations in resources.items():
            wider = (other for other in resources if other != resource and platform.covers(other, resource))
            if left := operations.difference(*(resources[other] for other in wider)):
                alike[frozenset(left)].add(resource)
        for same, with_same in alike.items():
            yield AccessChange(
                principal,
                platform.operation_words(same),
                platform.resource_words(frozenset(with_same)),
                gained,
                # OTHER stands for all operations that neither side names.
                tuple(sorted(operation.replace(OTHER, "any other") for operation in same)),
            )
