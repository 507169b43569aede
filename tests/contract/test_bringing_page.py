# SPDX-License-Identifier: Apache-2.0
"""docs/bringing.md counts keys of other systems, and each of them has a row of catalog/bring."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from catalog.tables import table
from schemas.findings import RULES
from trainyard.bring import notes
from trainyard.bring.kubernetes import TRAINING_KINDS

PAGE = Path(__file__).parents[2] / "docs" / "bringing.md"
COUNTED = re.findall(
    r"^\| (sbatch|calls|ADS|OpenPAI plugin|OpenPAI|Kubernetes|Pod|kind|resource) `([^`]+)` \| \d+ \|$",
    PAGE.read_text("utf-8"),
    re.MULTILINE,
)
OUTCOMES = {"carried", "left_out", "meaningless", "refused"}


def test_every_counted_key_has_a_row() -> None:
    known = {
        "sbatch": set(table("bring/slurm")["options"]),
        "calls": {row["program"] for row in table("bring/slurm")["calls"]},
        "ADS": set(table("bring/ads")["keys"]),
        "OpenPAI": set(table("bring/openpai")["keys"]),
        "OpenPAI plugin": set(table("bring/openpai")["plugins"]),
        "Kubernetes": {*table("bring/kubernetes")["training"], *table("bring/kubernetes")["trainer"]},
        "Pod": set(table("bring/kubernetes")["pod"]),
        "resource": set(table("bring/kubernetes")["resources"]),
        "kind": TRAINING_KINDS,
    }
    assert len(COUNTED) > 20
    # A table is counted as a whole, and its keys have rows.
    assert not [(kind, key) for kind, key in COUNTED if not any(f"{row}.".startswith(f"{key}.") for row in known[kind])]


@pytest.mark.parametrize(
    ("file", "part"),
    [("slurm", "options"), ("ads", "keys"), ("openpai", "keys"), ("openpai", "plugins"), ("openpai", "completion")],
)
def test_every_row_has_one_outcome(file: str, part: str) -> None:
    rows = table(f"bring/{file}")[part]
    assert not [key for key, row in rows.items() if len(OUTCOMES & row.keys()) != 1]
    # What was left out has a remedy.
    assert not [key for key, row in rows.items() if "left_out" in row and "do" not in row]


def test_notes_have_codes_of_their_own() -> None:
    codes = {value for name, value in vars(notes).items() if name.isupper() and str(value).startswith("TB")}
    assert codes == notes.note_codes().keys()
    assert not codes & RULES.keys()
