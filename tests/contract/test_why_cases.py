# SPDX-License-Identifier: Apache-2.0
"""The cases of `trainyard runs why`: enough of them, and half of them used in no test of a symptom."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, get_args

import pytest

from tests.support.local_team import ROOT
from tests.support.why_cases import CAUSES, ENDED, HANGING, NOTHING_IS_WRONG, TRAINING, Case, read_cases
from tests.support.why_world import DISTURBED, INCOMPLETE, RIGHT, SILENT, WRONG, WRONG_WITH_CERTAINTY, judge_answer
from trainyard.why.model import Kind

CASES = read_cases()
# Where the cases themselves are.
_OWN = ("tests/why",)


def test_there_are_enough_cases_with_names_of_their_own() -> None:
    assert len(CASES) >= 190
    doubled = [name for name, count in Counter(case.name for case in CASES).items() if count > 1]
    assert not doubled
    assert {case.platform for case in CASES} == {"oci", "openpai", "aws"}
    assert {case.cause for case in CASES} == CAUSES
    assert set(get_args(Kind)) >= CAUSES, "words of the verdict's own list"
    assert {case.asked for case in CASES} == {ENDED, HANGING, TRAINING}


def test_a_case_says_what_is_true() -> None:
    for case in CASES:
        assert all(0 <= rank < len(case.nodes) for rank in case.ranks), case
        assert case.victim < len(case.nodes), case
        assert not case.undisturbed or (case.victim, case.ranks, case.shows) == (-1, (), ()), case
        assert (case.action == "close") == bool(case.ports and case.ways), case
        assert case.undisturbed or case.ranks or case.shows or case.cause in ("image", "mismatch", "store"), case


def test_half_of_the_cases_are_in_no_test_of_a_symptom() -> None:
    held_back = [case for case in CASES if case.held_back]
    assert 0.4 < len(held_back) / len(CASES) < 0.6
    found = []
    for file in [*(ROOT / "tests").rglob("*"), *(ROOT / "catalog").rglob("*.toml")]:
        place = file.relative_to(ROOT).as_posix()
        if file.suffix in (".py", ".toml", ".json", ".yaml", ".txt", ".md") and not place.startswith(_OWN):
            text = file.read_text("utf-8", "replace")
            found += [f"{place}: {words}" for case in held_back for words in _own_words(case) if words in text]
    assert not found, "a symptom made for these cases would prove nothing"


def test_the_page_names_cases_and_ten_real_runs() -> None:
    page = (ROOT / "docs" / "why.md").read_text("utf-8")
    named = set(re.findall(r"`((?:oci|openpai|aws)-[\w-]+)`", page))
    assert named <= {case.name for case in CASES}, (
        "a row of docs/why.md names a case that tests/why/cases does not have"
    )
    section = page.partition("## Real runs")[2].partition("\n#")[0]
    runs = [name for name in re.findall(r"^\|[^|]+\| `([^`]+)` \|", section, re.MULTILINE) if name in named]
    assert len(set(runs)) >= 10


def _own_words(case: Case) -> list[str]:
    return [words for words in (case.name, case.says) if words]


CASE = Case("a", "oci", "gang", "raise", "exception", victim=1, ranks=(1,), shows=("train.py",))
VERDICT = {"kind": "exception", "certainty": "certain", "ranks": [1], "line": "train.py:7", "evidence": []}


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, RIGHT),
        ({"certainty": "likely"}, RIGHT),
        ({"line": "", "evidence": ["train.py"]}, INCOMPLETE),
        ({"ranks": [0, 1]}, WRONG_WITH_CERTAINTY),
        ({"ranks": [], "certainty": "likely"}, WRONG),
        ({"kind": "exit"}, WRONG_WITH_CERTAINTY),
        ({"kind": "unknown"}, SILENT),
        ({"kind": "none"}, SILENT),
        ({"kind": "lost peer", "ranks": [0], "certainty": "unknown"}, SILENT),
    ],
)
def test_a_verdict_is_compared_with_what_was_done(changes: dict[str, Any], outcome: str) -> None:
    assert judge_answer(CASE, {**VERDICT, **changes}, "FAILED") == outcome


@pytest.mark.parametrize(
    ("changes", "state", "outcome"),
    [
        ({"kind": "none", "ranks": []}, "SUCCEEDED", RIGHT),
        ({"kind": "none", "ranks": []}, "FAILED", DISTURBED),
        ({"kind": "unknown", "ranks": []}, "SUCCEEDED", RIGHT),
        ({"kind": "deadlock", "certainty": "likely"}, "SUCCEEDED", WRONG),
        ({"kind": "none", "ranks": [1]}, "SUCCEEDED", WRONG_WITH_CERTAINTY),
    ],
)
def test_an_undisturbed_run_is_accused_by_any_cause(changes: dict[str, Any], state: str, outcome: str) -> None:
    undisturbed = Case("b", "oci", "gang", "nothing", NOTHING_IS_WRONG)
    assert judge_answer(undisturbed, {**VERDICT, **changes}, state) == outcome
