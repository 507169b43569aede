# SPDX-License-Identifier: Apache-2.0
"""The record of access decisions is bounded, and counts repeated calls."""

from components.oci.iam.judge import AccessDecision, Principal, Target
from localcloud.oci.judgements import Judgements

RUN = Principal("datasciencejobrun", "run0")


def note(judged: Judgements, name: str) -> None:
    judged.note(
        "GetObject", RUN, ("OBJECT_READ",), Target("c", {"target.object.name": name}), AccessDecision(True, (), ())
    )


def test_what_repeats_itself_is_one_row_that_counts() -> None:
    judged = Judgements()
    for _ in range(3):
        note(judged, "peers/0")
    (row,) = judged.since(0)
    assert (row["times"], row["id"]) == (3, 3)
    note(judged, "peers/1")
    assert [row["target"]["variables"] for row in judged.since(3)] == [{"target.object.name": "peers/1"}]


def test_the_oldest_are_let_go_and_how_many_is_told() -> None:
    judged = Judgements(most=2)
    for name in ("a", "b", "a", "c"):
        note(judged, name)
    assert [row["target"]["variables"]["target.object.name"] for row in judged.since(0)] == ["a", "c"]
    assert judged.forgotten == 1
