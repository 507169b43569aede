# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest

from localcloud.hosts.assignment import Group, Outline, judge_run_results

OK = {"reason": "exited", "code": 0, "detail": ""}
BAD = {"reason": "exited", "code": 2, "detail": ""}


def _outline(minimum: int, minutes: int = 0) -> Outline:
    return Outline([Group("main", 1, 1), Group("workers", 2, minimum)], minutes)


@pytest.mark.parametrize(
    ("minimum", "results", "state"),
    [
        (2, {}, "IN_PROGRESS"),
        (2, {0: OK, 1: OK}, "IN_PROGRESS"),
        (2, {0: OK, 1: OK, 2: OK}, "SUCCEEDED"),
        (2, {1: BAD}, "FAILED"),
        (1, {1: BAD}, "IN_PROGRESS"),
        (1, {0: OK, 1: BAD, 2: OK}, "SUCCEEDED"),
        (1, {0: BAD}, "FAILED"),
    ],
)
def test_a_group_ends_by_its_minimum(minimum: int, results: dict[int, Any], state: str) -> None:
    assert judge_run_results(_outline(minimum), results).state == state


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (BAD, "Node 1 of group workers: The job run exited with code 2"),
        ({"reason": "exited", "code": -9, "detail": ""}, "killed by SIGKILL"),
        ({"reason": "time limit", "code": -15, "detail": ""}, "maximum runtime of 5 minutes"),
        ({"reason": "unstartable", "code": None, "detail": "No such file"}, "could not be started: No such file"),
        ({"reason": "stopped", "code": -15, "detail": ""}, "host was stopped"),
        ({"reason": "limit", "code": -9, "detail": "it wrote too much"}, "The job run was ended: it wrote too much"),
        ({"reason": "exited", "code": 137, "detail": "no memory"}, "The job run exited with code 137: no memory"),
        ({"reason": "lost", "code": None, "detail": "gone"}, "host was lost: gone"),
    ],
)
def test_failures_are_described(result: dict[str, Any], said: str) -> None:
    assert said in judge_run_results(_outline(2, 5), {1: result}).details
