# SPDX-License-Identifier: Apache-2.0
"""What is lost though nothing is removed: a resource keeps less than before, or nothing protects it any more; or a new
one deletes what another resource has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Any

from components.platform.review import UNKNOWN, Loss, ReviewedResource
from components.values.projections import input_values
from components.values.resource_types import KeepsLess, find_resource_type
from schemas.name_suggestions import count_noun

# Providers name units in upper case.
_DAYS = {"DAYS": 1, "YEARS": 365}
_OPTIONS = {
    "protect": "nothing protects it any more: a destroy, or a replacement, deletes it with what is in it",
    "retain": "it does not stay after a destroy any more: a destroy deletes it with what is in it",
}


def find_loss_in_place(before: ReviewedResource, after: ReviewedResource) -> Loss | None:
    row = find_resource_type(after.type)
    by_input = row.keeps_less if row else ()
    losses = [
        *(
            _loss_of_input(keeps, before.inputs, after.inputs)
            for keeps in by_input
            # Leaving out what the cloud fills in changes nothing.
            if keeps.input in after.inputs or keeps.input not in (row.computed if row else ())
        ),
        *(
            Loss(words, "leave it protected")
            for option, words in _OPTIONS.items()
            if getattr(before, option) and not getattr(after, option)
        ),
    ]
    return _joined_losses(losses)


def find_loss_by_creation(created: ReviewedResource, others: Iterable[ReviewedResource]) -> Loss | None:
    """`others`: all that is created. What is in a resource that is new itself is not lost."""
    row = find_resource_type(created.type)
    made = {UNKNOWN, *(value for other in others if other is not created for value in _names_of_resource(other))}
    return _joined_losses(
        _loss_of_input(keeps, {}, created.inputs)
        for keeps in (row.keeps_less if row else ())
        if keeps.of and str(created.inputs.get(keeps.of)) not in made
    )


def _names_of_resource(resource: ReviewedResource) -> Iterator[str]:
    row = find_resource_type(resource.type)
    named_by = row.lost.named_by if row and row.lost else ()
    yield resource.id
    yield from (str(resource.inputs[name]) for name in named_by if name in resource.inputs)


def _joined_losses(losses: Iterable[Loss | None]) -> Loss | None:
    found = [loss for loss in losses if loss is not None]
    return Loss("; ".join(loss.words for loss in found), found[0].avoid) if found else None


def _loss_of_input(keeps: KeepsLess, before: Mapping[str, Any], after: Mapping[str, Any]) -> Loss | None:
    was, becomes = (_least_kept(keeps, inputs) for inputs in (before, after))
    if becomes >= was:
        return None
    words = keeps.words
    for mark, number in (("{before}", was), ("{after}", becomes)):
        words = words.replace(mark, "ever" if number == inf else count_noun(int(number), "day"))
    return Loss(words.replace("{of}", str(after.get(keeps.of))), keeps.avoid)


def _least_kept(keeps: KeepsLess, inputs: Mapping[str, Any]) -> float:
    """The number that the input says, of several the lowest. A value that cannot be read counts as no limit: its
    change is named as not judged."""
    values = list(_counting_values(keeps, inputs))
    if keeps.on:
        return float(any(value == keeps.on for value, _ in values))
    # 0 is no limit, wherever days are counted.
    return min((_as_number(value) * days or inf for value, days in values), default=keeps.without)


def _counting_values(keeps: KeepsLess, inputs: Mapping[str, Any]) -> Iterator[tuple[Any, int]]:
    """The values of the input, each with the days of its unit."""
    first, _, below = keeps.input.partition(".")
    for part in input_values(inputs, first):
        if not isinstance(part, Mapping):
            yield part, 1
        elif all(part.get(name) in values for name, values in keeps.only.items()):
            days = _DAYS.get(part.get(keeps.unit, ""), 1)
            yield from ((value, days) for value in input_values(part, below))


def _as_number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return inf
