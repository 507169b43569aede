# SPDX-License-Identifier: Apache-2.0
"""Compares the recorded calls of Oracle's provider, run by Terraform on the local OCI, with the table of its calls.

oci_provider_seen.json was written from the cloud's log: each type made, read, changed, moved and removed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from catalog.tables import table

RECORD = json.loads(Path(__file__).with_name("oci_provider_seen.json").read_text("utf-8"))
SEEN: Mapping[str, Mapping[str, Sequence[str]]] = RECORD["types"]
# Each with the reason.
NOT_SEEN: Mapping[str, str] = RECORD["not seen"]
TYPES = table("oci_provider_calls")["types"]


def test_every_type_is_recorded_or_has_a_reason() -> None:
    assert {*SEEN, *NOT_SEEN} == set(TYPES)
    assert not SEEN.keys() & NOT_SEEN.keys()


@pytest.mark.parametrize("token", SEEN)
def test_the_recorded_calls_are_those_of_the_table(token: str) -> None:
    row = TYPES[token]
    for what, calls in SEEN[token].items():
        step, _, given = what.partition(" with ")
        step, _, changed = step.partition(" ")
        expected = row["given"][given].get(step, row[step]) if given else row.get("changed", {}).get(changed, row[step])
        assert set(calls) == set(expected), what
