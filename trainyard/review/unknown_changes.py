# SPDX-License-Identifier: Apache-2.0
"""Changes that no section of a review judges: of resources whose type has no row, and of inputs that no row names.

They are named with their values: what a review does not know, it must not pass in silence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

from components.platform.review import ReviewedResource, Snapshot
from components.values.resource_types import EVERY_INPUT, find_resource_type
from trainyard.review.changes import find_differences, match_resources, without_indexes
from trainyard.review.model import Change, ChangeKind, InputChange, UnknownChange
from trainyard.review.program_settings import setting_words


def find_unknown_changes(before: Snapshot, after: Snapshot, changes: tuple[Change, ...]) -> Iterator[UnknownChange]:
    kinds: Mapping[str, ChangeKind] = {change.urn: change.kind for change in changes}
    pairs, created, deleted = match_resources(before, after, with_providers=True)
    is_new_stack = not before.resources
    # A preview has no plan of the side before.
    plan_judges = before.plan != after.plan and (is_new_stack or bool(before.plan))
    both_sides: list[tuple[ReviewedResource | None, ReviewedResource | None]] = [
        *((pair.before, pair.after) for pair in pairs),
        *((None, resource) for resource in created),
        *((resource, None) for resource in deleted),
    ]
    for old, new in both_sides:
        shown = new or old
        assert shown is not None
        was, becomes = (_inputs_and_provider(side, other) for side, other in ((old, new), (new, old)))
        row = find_resource_type(shown.type)
        reads = row.in_reviews if row else None
        in_any_order = (row.unordered if row else frozenset[str]()) | (reads.in_any_order if reads else frozenset())
        same = {name: was[name] for name in in_any_order if _has_same_items(was.get(name), becomes.get(name))}
        becomes = {**becomes, **same}
        # What goes with a resource of a known type is said by the sections.
        if was == becomes or (reads and new is None):
            continue
        listed = frozenset[str]()
        if reads:
            listed = reads.listed(
                in_new_resource=old is None, in_new_stack=is_new_stack, where_plan_changes=plan_judges
            )
        unknown_inputs = tuple(
            InputChange(path, *("" if value is None else setting_words(path, value) for value in (then, now)))
            for path, then, now in sorted(_differing_leaves(was, becomes), key=itemgetter(0))
            if not _is_below(without_indexes(path), listed)
        )
        if unknown_inputs or not reads:
            kind = kinds.get(shown.urn, "created" if old is None else "deleted" if new is None else "changed")
            harmless = row.harmless if row else ""
            yield UnknownChange(kind, shown.type, shown.name, shown.urn, unknown_inputs, harmless, bool(reads))


def _inputs_and_provider(side: ReviewedResource | None, other: ReviewedResource | None) -> Mapping[str, Any]:
    """The inputs, and the provider where both sides know theirs. What is unusual of a new provider is named itself."""
    if side is None or other is None or None in (side.provider, other.provider):
        return side.inputs if side else {}
    return {**side.inputs, "(provider)": side.provider or "the default one"}


def _has_same_items(old: Any, new: Any) -> bool:
    """Whether two lists differ in their order only."""
    if not (isinstance(old, list) and isinstance(new, list)):
        return False
    then, now = (sorted(json.dumps(item, sort_keys=True) for item in items) for items in (old, new))
    return then == now


def _differing_leaves(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The paths of all values of which one side has none, or another one, with both values."""
    for differing, then, now in find_differences(old, new, path):
        there = now if then is None else then if now is None else None
        if isinstance(there, Mapping) and there:
            yield from _differing_leaves(then or {}, now or {}, differing)
        else:
            yield differing, then, now


def _is_below(path: str, listed: frozenset[str]) -> bool:
    steps = path.split(".")
    return EVERY_INPUT in listed or any(".".join(steps[:number]) in listed for number in range(1, len(steps) + 1))
