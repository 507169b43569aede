# SPDX-License-Identifier: Apache-2.0
"""Compares the recorded calls of Oracle's provider, run by Terraform on the local OCI, with the rows of its types.

oci_provider_seen.json was written from the cloud's log: each type made, read, changed, moved and removed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from components.oci.types import SERVED_TYPES

RECORD = json.loads(Path(__file__).with_name("oci_provider_seen.json").read_text("utf-8"))
SEEN: Mapping[str, Mapping[str, Sequence[str]]] = RECORD["types"]
# Each with the reason.
NOT_SEEN: Mapping[str, str] = RECORD["not seen"]


def test_every_type_is_recorded_or_has_a_reason() -> None:
    assert {*SEEN, *NOT_SEEN} == set(SERVED_TYPES)
    assert not SEEN.keys() & NOT_SEEN.keys()


@pytest.mark.parametrize("token", SEEN)
def test_the_recorded_calls_are_those_of_the_row(token: str) -> None:
    row = SERVED_TYPES[token]
    for what, calls in SEEN[token].items():
        step, _, given = what.partition(" with ")
        step, _, changed = step.partition(" ")
        usual = getattr(row, step)
        expected = row.given[given].get(step, usual) if given else row.changed.get(changed, usual)
        assert set(calls) == set(expected), what
