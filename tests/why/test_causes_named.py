# SPDX-License-Identifier: Apache-2.0
"""`trainyard runs why` names what a test did to a run, and accuses nobody where nothing was done."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, zip_longest

import pytest

from tests.support.counts import FIRST, wanted
from tests.support.why_cases import ENDED, Case, read_cases
from tests.support.why_world import RIGHT, WRONG_WITH_CERTAINTY, Answer, WhyWorld, score_of, skip_without_environments

pytestmark = pytest.mark.engine

# What `make test` asks: a case of each kind of evidence that is quick, all on one platform.
SAMPLE = (
    "oci-gang-raises-1", "oci-gang-ends-early-2", "oci-gang-is-killed-0", "oci-gang-takes-all-memory-1",
    "oci-gang-7000-closed-both", "oci-gang-exits-with-a-code-2", "oci-gang-quotes-symptoms", "oci-gang-trains",
)  # fmt: skip
ALL, ALL_UNDISTURBED = 200, 100
_LEAST_RIGHT = 0.95
_AT_ONCE, _SHARES = 2, 3
# What these do is felt by every run of the platform, so no other run is there meanwhile.
_FELT_BY_ALL = ("close", "refuse", "remove-image", "store")


@pytest.fixture
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WhyWorld]:
    made = WhyWorld(tmp_path_factory.mktemp("why"))
    try:
        yield made
    finally:
        made.end()


# Many cases are shared by clouds, which do not feel what is done to one another.
@pytest.mark.parametrize("share", range(_SHARES if wanted(0, ALL) >= ALL else 1))
def test_what_was_done_to_a_run_is_named(
    world: WhyWorld, share: int, record_property: Callable[[str, object], None]
) -> None:
    cases = _drawn_cases()
    cases = cases[share::_SHARES] if len(cases) > ALL else cases
    # The stack on OCI has jobs of every framework, so its `up` needs these, too.
    skip_without_environments("pytorch", "horovod-pytorch")
    answers = _ask_all(world, cases)
    score = score_of(answers)
    record_property("score", score)
    print(score)
    disturbed = [answer for answer in answers if not answer.case.undisturbed]
    for answer in disturbed:
        if answer.case.asked == ENDED and answer.state == "FAILED":
            assert answer.on_console, answer
            assert answer.on_console in answer.screen, (answer.on_console, answer.screen[-3000:])
    assert not [str(answer) for answer in answers if answer.outcome == WRONG_WITH_CERTAINTY], score
    accused = [answer for answer in answers if answer.case.undisturbed and answer.outcome != RIGHT]
    assert not accused, "\n".join([score, *(answer.screen[-3000:] for answer in accused)])
    assert sum(answer.outcome == RIGHT for answer in disturbed) >= _LEAST_RIGHT * len(disturbed), score


def _drawn_cases() -> list[Case]:
    """The sample; in torture as many as are wanted, and half as many undisturbed runs."""
    cases = read_cases()
    count = wanted(0, ALL)
    if not count:
        by_name = {case.name: case for case in cases}
        return [by_name[name] for name in SAMPLE]
    draw = random.Random(FIRST)
    disturbed = _each_cause_in_turn([case for case in cases if not case.undisturbed], draw)
    undisturbed = [case for case in cases if case.undisturbed]
    draw.shuffle(undisturbed)
    repeated = -(-ALL_UNDISTURBED // len(undisturbed)) * undisturbed
    return [*disturbed[:count], *repeated[: -(-count * ALL_UNDISTURBED // ALL)]]


def _each_cause_in_turn(cases: Sequence[Case], draw: random.Random) -> list[Case]:
    """In random order, but so that a small number has many causes."""
    mixed = list(cases)
    draw.shuffle(mixed)
    by_cause: dict[str, list[Case]] = {}
    for case in mixed:
        by_cause.setdefault(case.cause, []).append(case)
    return [case for case in chain.from_iterable(zip_longest(*by_cause.values())) if case is not None]


def _ask_all(world: WhyWorld, cases: Sequence[Case]) -> list[Answer]:
    names = {index: f"c{index}" for index in range(len(cases))}
    alone = [index for index, case in enumerate(cases) if case.action.startswith(_FELT_BY_ALL)]
    beside = [index for index in names if index not in alone]

    def ask(index: int) -> Answer:
        try:
            return world.ask(cases[index], names[index])
        except AssertionError as error:
            if len(cases) <= len(SAMPLE):
                raise
            # It counts as not named, and the others are asked all the same.
            return Answer(cases[index], {"kind": "unknown", "certainty": "unknown", "ranks": []}, "", str(error), "")

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = list(pool.map(ask, beside))
    return [*answers, *map(ask, alone)]
