# SPDX-License-Identifier: Apache-2.0
"""A drawn change of any key of the schema that changes resources does not pass a review in silence."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.counts import FIRST, wanted
from tests.support.examples import STACKS
from tests.support.schema_changes import draw_change
from tests.support.silence import SilentChange, review_of_stacks

# Stacks in one review; reviews in `make test` and in `make torture`.
AT_ONCE, ROUNDS = 10, (2, 40)
# Its default value, written out, changes the words of statements and nothing that they allow.
SAME_MEANING = ("trainyard:access", "domain")
# What changes without a decision: words and labels for people.
PLAIN = re.compile(r"(displayName|description|freeformTags|definedTags|tags|tagSpecifications)\b")


def says_nothing(review: Mapping[str, Any]) -> bool:
    changed = [path for change in review["changes"] for path in change["because"] if not PLAIN.match(path)]
    return not review["decisions"] and bool(changed or any(change["kind"] != "changed" for change in review["changes"]))


def becomes(document: Mapping[str, Any]) -> Callable[[dict[str, Any]], object]:
    def change(current: dict[str, Any]) -> None:
        current.clear()
        current.update(document)

    return change


@pytest.mark.parametrize("seed", range(FIRST, FIRST + wanted(*ROUNDS)))
def test_no_drawn_change_of_a_stack_file_is_silent(seed: int, tmp_path: Path) -> None:
    chance, folder = Random(seed), tmp_path / "drawn"
    shutil.copytree(STACKS / "examples", folder / "examples")
    rows = []
    for number in range(AT_ONCE):
        stack, keys, document = draw_change(chance, folder)
        if keys == SAME_MEANING and document["config"][keys[0]][keys[1]] == "Default":
            continue
        rows.append(
            SilentChange(
                number=number, title=f"{number} {'.'.join(keys)}", shows=(), stack=stack, change=becomes(document)
            )
        )
    silent = [
        f"{review['stack']}: {json.dumps(review['changes'], indent=1)}"
        for review in review_of_stacks(rows, tmp_path / "reviewed")
        if says_nothing(review)
    ]
    assert not silent, "\n".join(silent)
