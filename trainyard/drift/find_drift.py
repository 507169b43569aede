# SPDX-License-Identifier: Apache-2.0
"""Finds the drift of one stack: reads its cloud, and compares it with what the stack declared."""

from __future__ import annotations

from catalog.platforms import Lacks, find_capability, platform_in
from components.platform.calls import ProviderError
from components.platform.client import UnknownPlaceError, Where
from components.platform.live import LiveQuestion, LiveReading, LiveSide
from components.platform.review import ReviewPlatform
from components.platform.status import WantedRuns
from trainyard.drift.compare import (
    Drift,
    EffectDifferences,
    Remark,
    compare_effects,
    compare_resources,
    compare_runs,
    in_order,
)
from trainyard.drift.declared import Declared
from trainyard.runs.run_looks import look_for

_NOT_EVALUATED = EffectDifferences((), judged=False)


def find_drift(declared: Declared, where: Where, known: tuple[str, ...] = ()) -> Drift:
    """`where`: the place of the stack's runs. Raises ProviderError if the cloud cannot be read at all."""
    platform = platform_in(where.config)
    question = LiveQuestion(declared.snapshot, where, known, declared.state_of)
    live, review = find_capability(platform, LiveReading), find_capability(platform, ReviewPlatform)
    side = LiveSide(question.declared, question.declared) if isinstance(live, Lacks) else live.read(question)
    effects = _NOT_EVALUATED
    if not isinstance(review, Lacks):
        effects = compare_effects(review, side.declared, side.snapshot)
    runs: tuple[Remark, ...] = ()
    unread = [*side.unread, *effects.unread]
    if declared.runs:
        try:
            look = look_for(where, WantedRuns(declared.snapshot.stack))
            runs = tuple(compare_runs(declared.runs, look.look(deeply=False)))
        except UnknownPlaceError as error:
            unread.append(f"its runs: {error}")
        except ProviderError as error:
            unread.append(f"its runs: {error.cause}")
    remarks = in_order((*compare_resources(side, effects), *runs))
    return Drift(declared.snapshot.stack, platform, remarks, tuple(dict.fromkeys(unread)))
