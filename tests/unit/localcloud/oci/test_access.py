# SPDX-License-Identifier: Apache-2.0
"""The log of access decisions is bounded, and counts repeated calls."""

from components.oci.iam.judge import AccessDecision, Principal, Target
from localcloud.oci.access_decisions import DecisionLog

RUN = Principal("datasciencejobrun", "run0")
OTHER = Principal("datasciencejobrun", "run1")


def record(decisions: DecisionLog, name: str, by: Principal = RUN) -> None:
    target = Target("c", {"target.object.name": name})
    decisions.record("GetObject", by, ("OBJECT_READ",), target, AccessDecision(True, (), ()))


def test_repeated_calls_share_one_row_with_a_count() -> None:
    decisions = DecisionLog()
    for _ in range(3):
        record(decisions, "peers/0")
    (row,) = decisions.since(0)
    assert (row["times"], row["id"]) == (3, 3)
    record(decisions, "peers/1")
    assert [row["target"]["variables"] for row in decisions.since(3)] == [{"target.object.name": "peers/1"}]


def test_the_oldest_rows_are_dropped_and_counted() -> None:
    decisions = DecisionLog(most=2)
    for name in ("a", "b", "a", "c"):
        record(decisions, name)
    assert [row["target"]["variables"]["target.object.name"] for row in decisions.since(0)] == ["a", "c"]
    assert decisions.forgotten == 1


def test_another_runs_rows_do_not_take_the_place_of_these() -> None:
    decisions = DecisionLog(most=4)
    record(decisions, "mine")
    for number in range(9):
        record(decisions, str(number), OTHER)
    assert [row["target"]["variables"]["target.object.name"] for row in decisions.since(0)] == ["mine", "6", "7", "8"]
    assert decisions.forgotten == 6
