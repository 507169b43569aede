# SPDX-License-Identifier: Apache-2.0
"""What is lost though a resource stays: it keeps less than before, or nothing protects it any more."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from components.platform.review import Loss, ReviewedResource
from components.values.projections import input_values
from components.values.resource_types import KeepsLess, find_resource_type
from schemas.name_suggestions import count_noun

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
    found = [loss for loss in losses if loss is not None]
    return Loss("; ".join(loss.words for loss in found), found[0].avoid) if found else None


def _loss_of_input(keeps: KeepsLess, before: Mapping[str, Any], after: Mapping[str, Any]) -> Loss | None:
    was, becomes = (_least_kept(keeps, inputs) for inputs in (before, after))
    if becomes >= was:
        return None
    words = keeps.words
    for mark, number in (("{before}", was), ("{after}", becomes)):
        words = words.replace(mark, "ever" if number == inf else count_noun(int(number), "day"))
    return Loss(words, keeps.avoid)


def _least_kept(keeps: KeepsLess, inputs: Mapping[str, Any]) -> float:
    """The number that the input says, of several the lowest. Values that cannot be read keep nothing."""
    values = list(input_values(inputs, keeps.input))
    if keeps.on:
        return float(any(value == keeps.on for value in values))
    # 0 is no limit, wherever days are counted.
    return min((_as_number(value) or inf for value in values), default=keeps.without)


def _as_number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return inf
