# SPDX-License-Identifier: Apache-2.0
"""Completion policies: for all events in any order, all nodes reach the same, correct verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.document import Launch, Role
from launcher.retries import Final, run_verdict
from tests.support.documents import launch


def run(*roles: Role, gang: bool = False) -> Launch:
    return replace(launch(), roles=roles, gang=gang)


def role(name: str, replicas: int, failed: int = 1, succeeded: int | None = None, service: bool = False) -> Role:
    return Role(name, replicas, service, failed, succeeded)


WELL, BADLY = True, False


@pytest.mark.parametrize(
    ("what", "roles", "gang", "endings", "expected"),
    [
        ("nothing has ended", [role("main", 1), role("worker", 2)], False, [], None),
        ("some have ended well", [role("main", 1), role("worker", 2)], False, [(0, WELL), (1, WELL)], None),
        ("all have ended well", [role("main", 1), role("worker", 1)], False, [(0, WELL), (1, WELL)], (True, 1)),
        ("the first failure", [role("main", 1), role("worker", 2)], False, [(2, BADLY)], (False, 2)),
        ("a failure that is allowed", [role("worker", 3, failed=2)], False, [(1, BADLY)], None),
        ("the second of two", [role("worker", 3, failed=2)], False, [(1, BADLY), (0, BADLY)], (False, 0)),
        ("failures never fail it", [role("worker", 2, failed=-1)], False, [(0, BADLY), (1, BADLY)], (True, 1)),
        ("enough have succeeded", [role("worker", 3, succeeded=2)], False, [(2, WELL), (0, WELL)], (True, 0)),
        ("all must end", [role("worker", 2, succeeded=-1)], False, [(0, WELL)], None),
        ("services are not waited for", [role("main", 1), role("ps", 2, service=True)], False, [(0, WELL)], (True, 0)),
        ("a service that fails", [role("main", 1), role("ps", 2, service=True)], False, [(2, BADLY)], (False, 2)),
        ("a gang with a failure", [role("worker", 3, failed=2)], True, [(1, BADLY)], (False, 1)),
        ("a gang that may fail", [role("worker", 3, failed=-1)], True, [(1, BADLY)], (True, 1)),
        ("what came first decides", [role("worker", 2, succeeded=1)], False, [(0, BADLY), (1, WELL)], (False, 0)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_run_ends_by_its_completion_policy(
    what: str, roles: list[Role], gang: bool, endings: list[tuple[int, bool]], expected: tuple[bool, int] | None
) -> None:
    found = run_verdict(run(*roles, gang=gang), [Final(rank, well, 0 if well else 3) for rank, well in endings])
    assert (found and (found.succeeded, found.rank)) == expected, what


@given(
    st.lists(st.booleans(), min_size=6, max_size=6), st.permutations(range(6)),
    st.integers(-1, 4), st.one_of(st.none(), st.integers(-1, 4).filter(bool)), st.booleans(),
)  # fmt: skip
def test_later_events_never_change_a_verdict(
    well: list[bool], order: list[int], failed: int, succeeded: int | None, gang: bool
) -> None:
    """Nodes learn of ends one after the other. A node that learns of them later must reach the same decision."""
    made = run(role("main", 2, failed or 1, succeeded), role("worker", 4, failed or 1, succeeded), gang=gang)
    finals = [Final(rank, well[rank], 0 if well[rank] else 3) for rank in order]
    verdicts = [run_verdict(made, finals[:count]) for count in range(len(finals) + 1)]
    decided = [one for one in verdicts if one is not None]
    assert decided, "when everything has ended the run has"
    assert all(one == decided[0] for one in decided)
    assert verdicts.index(decided[0]) == len(verdicts) - len(decided)


@pytest.mark.parametrize(
    ("endings", "expected"),
    [
        ([(1, BADLY)], None),
        ([(1, BADLY), (2, BADLY)], (False, 2)),
        ([(0, BADLY)], (False, 0)),
        ([(1, BADLY), (2, WELL)], None),
        ([(1, BADLY), (0, WELL)], (True, 0)),
    ],
)
def test_an_elastic_run_needs_its_main_node_and_so_many_others(
    endings: list[tuple[int, bool]], expected: tuple[bool, int] | None
) -> None:
    options = {"elastic": True, "minNodes": 2}
    made = replace(launch(framework="horovod", options=options), roles=(role("main", 1), role("worker", 2, failed=-1)))
    found = run_verdict(made, [Final(rank, well, 0 if well else 3) for rank, well in endings])
    assert (found and (found.succeeded, found.rank)) == expected
