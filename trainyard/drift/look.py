# SPDX-License-Identifier: Apache-2.0
"""Looks at one stack: what it declared, what its cloud has, and the difference."""

from __future__ import annotations

from catalog.platforms import platform_in
from components.platform.base import answers, does_answer
from components.platform.calls import ProviderError
from components.platform.client import UnknownPlaceError, Where
from components.platform.live import LiveQuestion
from components.platform.status import WantedRuns
from trainyard.drift.compare import Drift, Meaning, Remark, compare, compare_runs, evaluate, in_order
from trainyard.drift.declared import Declared
from trainyard.runs.look import look_for

_UNJUDGED = Meaning((), judged=False)


def find_drift(declared: Declared, where: Where, known: tuple[str, ...] = ()) -> Drift:
    """`where`: as for its runs. ProviderError where the cloud cannot be asked at all."""
    platform = answers(platform_in(where.config))
    side = platform.live(LiveQuestion(declared.snapshot, where, known))
    evaluated = platform.name != "" and does_answer(platform.name, "review")
    meaning = evaluate(platform.review, side.declared, side.snapshot) if evaluated else _UNJUDGED
    runs, unread = _runs(declared, where)
    remarks = in_order((*compare(side, meaning), *runs))
    unread = tuple(dict.fromkeys((*side.unread, *meaning.unread, *unread)))
    return Drift(declared.snapshot.stack, platform.name, remarks, unread)


def _runs(declared: Declared, where: Where) -> tuple[tuple[Remark, ...], tuple[str, ...]]:
    """Remarks on runs, and why they could not be seen."""
    if not declared.runs:
        return (), ()
    try:
        look = look_for(where, WantedRuns(declared.snapshot.stack))
        return tuple(compare_runs(declared.runs, look.look(deeply=False))), ()
    except UnknownPlaceError as error:
        return (), (f"its runs: {error}",)
    except ProviderError as error:
        return (), (f"its runs: {error.cause}",)
