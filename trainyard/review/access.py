# SPDX-License-Identifier: Apache-2.0
"""Which principals gain or lose which permissions: the difference of their abilities, in few sentences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from components.platform.circumstances import OTHER
from components.platform.review import EVERYBODY, Ability, ReviewPlatform

# The platforms' word for all resources.
_EVERYTHING = "everything"
_ByPrincipal = Mapping[str, Mapping[str, frozenset[str]]]


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


def access_changes(
    before: frozenset[Ability], after: frozenset[Ability], platform: ReviewPlatform
) -> tuple[AccessChange, ...]:
    """Gains come first, then losses. What everybody gains or loses is not repeated for single principals."""
    gained = _sentences(after - before, True, platform)
    lost = _sentences(before - after, False, platform)
    return (*sorted(gained), *sorted(lost))


def _sentences(abilities: Iterable[Ability], gained: bool, platform: ReviewPlatform) -> Iterator[AccessChange]:
    for principal, resources in _except_of_everybody(_by_principal(abilities)).items():
        alike: dict[frozenset[str], set[str]] = defaultdict(set)
        for resource, operations in resources.items():
            if rest := operations - _covered(resource, resources, platform):
                alike[rest].add(resource)
        for operations, named in alike.items():
            yield AccessChange(
                principal,
                platform.operation_words(operations),
                platform.resource_words(frozenset(named)),
                gained,
                # OTHER stands for all operations that neither side names.
                tuple(sorted(name.replace(OTHER, "any other") for name in operations)),
            )


def _covered(resource: str, among: Mapping[str, frozenset[str]], platform: ReviewPlatform) -> frozenset[str]:
    """The operations that are already reported for a wider resource."""
    wider = (
        operations for other, operations in among.items() if other != resource and platform.covers(other, resource)
    )
    return frozenset().union(*wider)


def _by_principal(abilities: Iterable[Ability]) -> dict[str, dict[str, frozenset[str]]]:
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for one in abilities:
        found[one.principal][one.resource].add(one.operation)
    return {
        principal: {resource: frozenset(operations) for resource, operations in rows.items()}
        for principal, rows in found.items()
    }


def _except_of_everybody(found: _ByPrincipal) -> _ByPrincipal:
    of_everybody = found.get(EVERYBODY, {})
    left = {
        principal: {
            resource: rest
            for resource, operations in rows.items()
            if (
                rest := operations
                - (of_everybody.get(resource, frozenset()) if principal != EVERYBODY else frozenset())
            )
        }
        for principal, rows in found.items()
    }
    return {principal: rows for principal, rows in left.items() if rows}
