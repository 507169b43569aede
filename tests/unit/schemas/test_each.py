# SPDX-License-Identifier: Apache-2.0
"""The runs that `each:` makes: their keys are safe, unique and stable."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.each import (
    MOST_RUNS,
    count_runs,
    expand_run,
    keys_of,
    live_at_once,
    swept_keys,
    turns_of,
    value_combinations,
)
from schemas.model import EachValue, Run, Secret

ARGS = ("--lr", "${each.lr}", "--bs", "${each.bs}", "${bucket}")
LISTS: dict[str, tuple[EachValue, ...]] = {"lr": (0.1, 0.01), "bs": (32, 64)}
values = st.one_of(st.booleans(), st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6), st.text(min_size=1, max_size=12))
lists = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True), st.lists(values, min_size=1, max_size=4).map(tuple),
    min_size=1, max_size=3,
)  # fmt: skip


def test_a_run_for_every_combination_in_an_order_that_does_not_depend_on_the_file() -> None:
    runs = dict(expand_run("sweep", Run(LISTS, ARGS, env={"RATE": "${each.lr}", "KEY": Secret("x"), "PLAIN": "1"})))
    assert list(runs) == ["sweep-bs-32-lr-0.1", "sweep-bs-32-lr-0.01", "sweep-bs-64-lr-0.1", "sweep-bs-64-lr-0.01"]
    turned = dict(reversed(LISTS.items()))
    assert keys_of("sweep", Run(turned)) == list(runs)
    one = runs["sweep-bs-64-lr-0.1"]
    assert one.args == ("--lr", "0.1", "--bs", "64", "${bucket}"), "other references are left to the plan"
    assert one.env == {"RATE": "0.1", "KEY": Secret("x"), "PLAIN": "1"}
    assert not one.each


def test_what_is_no_sweep_is_itself() -> None:
    run = Run(args=("--lr", "0.1"))
    assert list(expand_run("base", run)) == [("base", run)]
    assert count_runs(run) == 1


def test_numbers_that_the_engine_cannot_tell_apart_are_one() -> None:
    assert keys_of("a", Run({"x": (32.0, True, "two words", -1, 1e-05, "a/../b")})) == [
        "a-x-32", "a-x-true", "a-x-two-words", "a-x--1", "a-x-1e-05", "a-x-a-..-b",
    ]  # fmt: skip


@given(lists)
def test_keys_name_objects_and_another_value_moves_no_other(each: Any) -> None:
    run = Run(each)
    keys = keys_of("sweep", run)
    assert len(keys) == (count_runs(run) if count_runs(run) <= MOST_RUNS else 0)
    assert all(set(key) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") for key in keys)
    name = next(iter(each))
    more = Run({**each, name: (*each[name], "one more")})
    assert not keys_of("sweep", more) or set(keys) <= set(keys_of("sweep", more))


def test_too_many_are_never_made() -> None:
    run = Run({f"x{number}": tuple(range(1000)) for number in range(9)})
    assert count_runs(run) == 1000**9
    assert keys_of("sweep", run) == []
    assert next(value_combinations(run))


def test_a_sweep_is_found_in_a_file_with_errors_elsewhere() -> None:
    runs = {"sweep": {"each": {"lr": [0.1, "x y"]}, "args": 7}, "base": {}, "odd": {"each": {"lr": 3}}, "none": None}
    jobs = {"line": {"runs": runs}, "text": "text"}
    assert swept_keys(jobs, "line", "sweep") == ["sweep-lr-0.1", "sweep-lr-x-y"]
    assert swept_keys({"line": {"runs": {"s": {"each": {"n": list(range(99))}}}}}, "line", "s") == [], "a finding"


@pytest.mark.parametrize("name", [("line", "base"), ("line", "odd"), ("line", "none"), ("text", "x"), ("no", "x")])
def test_what_is_no_sweep_has_no_keys_of_one(name: tuple[str, str]) -> None:
    jobs = {"line": {"runs": {"base": {}, "odd": {"each": {"lr": 3}}, "none": None}}, "text": "text"}
    assert swept_keys(jobs, *name) == []
    assert swept_keys(None, *name) == []


def test_a_limit_counts_the_runs_of_its_own_sweep() -> None:
    job = SimpleNamespace(runs={"s": Run(LISTS, at_most=2), "s-more": Run(), "free": Run(LISTS)})
    names = [name for key, run in job.runs.items() for name in keys_of(key, run)]
    limits = {name: turns_of(cast(Any, job), name) for name in names}
    assert {name for name, limit in limits.items() if limit} == set(keys_of("s", job.runs["s"]))
    assert set(limits.values()) == {None, (2, "s-bs-")}
    assert {name for name in names if name.startswith("s-bs-")} == set(keys_of("s", job.runs["s"]))
    assert [live_at_once(run) for run in job.runs.values()] == [2, 1, 4]
    assert live_at_once(Run(LISTS, at_most=64)) == 4
    assert all(run.at_most is None for _, run in expand_run("s", job.runs["s"]))
